"""The data source without Spark: what importing it loads, and what its readers return."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql.datasource import InputPartition

from dmdelta.bronze.datasource import MySqlBinlog, segments_to_json
from dmdelta.errors import CorruptBinlog, from_wire
from dmdelta.model.segment import Segment
from tests.support.golden import GOLDEN, recording

HEAVY = ("numpy", "pyarrow", "pandas", "pydantic", "yaml", "dmdelta.config", "dmdelta.binlog.rows.decode")


def loaded_by(module: str) -> set[str]:
    """The heavy modules that importing `module` loads."""
    text = f"import sys, {module}; print(*(name for name in {HEAVY} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def test_planning_does_not_load_the_codec() -> None:
    """Spark imports the data source in each of its planning processes."""
    assert loaded_by("dmdelta.bronze.datasource") == set()


def test_executors_do_not_load_the_spec() -> None:
    """Reading rows needs the codec and Arrow, and nothing that parses a spec."""
    assert loaded_by("dmdelta.bronze.segment_reader") == {"numpy", "pyarrow", "dmdelta.binlog.rows.decode"}


def test_a_pickled_reader_reads_its_partitions() -> None:
    """Pickled as Spark does; the segments' rows are returned as record batches."""
    segments = list(recording("mysql80").segments())
    reader = MySqlBinlog({"segments": segments_to_json(segments)}).reader(None)  # type: ignore[arg-type]
    reader = pickle.loads(pickle.dumps(reader))  # noqa: S301
    batches = [batch for partition in reader.partitions() for batch in reader.read(partition)]
    rows = {row["table_name"] for batch in batches for row in batch.select(["table_name"]).to_pylist()}
    assert {"types", "changes"} <= rows


def test_a_foreign_partition_is_refused() -> None:
    """Only partitions returned by `partitions` can be read."""
    with pytest.raises(TypeError, match="not a partition of this data source"):
        MySqlBinlog({"path": str(GOLDEN / "mysql80")}).reader(None).read(InputPartition(1))  # type: ignore[arg-type]


def test_a_purged_segment_is_an_error_that_the_driver_parses(tmp_path: Path) -> None:
    """An executor can only return the error's text."""
    gone = Segment(str(tmp_path / "binlog.000001"), "src", 1, "binlog.000001", 4, 100)
    reader = MySqlBinlog({"segments": segments_to_json([gone])}).reader(None)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError) as caught:
        list(reader.read(reader.partitions()[0]))  # type: ignore[arg-type]
    assert isinstance(from_wire(str(caught.value)), CorruptBinlog)
