"""The positions at which the log of tables continues after a snapshot, from bronze's watermarks."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dmdelta.bronze.watermarks import exact_positions
from dmdelta.model.position import Position

FILE = "binlog.000007"


@pytest.fixture
def bronze(spark: SparkSession, tmp_path: Path) -> str:
    """Bronze with watermarks of tables, one for each chunk: (table, epoch, position, whether it is exact)."""
    read = [
        ("whole", 1, 500, True),
        ("whole", 1, 500, True),
        ("keyless", 1, 300, True),
        ("keyed", 1, 100, False),
        ("keyed", 1, 100, False),
        ("mixed", 1, 100, False),
        ("mixed", 1, 500, True),
        ("apart", 1, 400, True),
        ("apart", 1, 500, True),
        ("loaded_again", 1, 200, True),
        ("loaded_again", 3, 900, True),
        ("no_longer", 1, 200, True),
        ("no_longer", 3, 900, False),
        ("keyless", -2, 700, True),
        ("mixed", -2, 600, False),
        ("mixed", -2, 700, True),
    ]
    rows = [
        ("s1", "d", table, epoch, seq, "watermark", json.dumps({"file": FILE, "pos": pos, "exact": exact}))
        for seq, (table, epoch, pos, exact) in enumerate(read)
    ]
    rows += [("s2", "d", "whole", 1, 90, "watermark", rows[3][-1]), ("s1", "d", "whole", 1, 91, "read", None)]
    columns = "source_id STRING, schema_name STRING, table_name STRING, epoch INT, seq LONG, op STRING, ddl STRING"
    spark.createDataFrame(rows, columns).write.format("delta").save(str(tmp_path / "bronze"))
    return f"delta.`{tmp_path / 'bronze'}`"


def test_a_table_is_exact_only_if_all_chunks_of_its_newest_load_are(spark: SparkSession, bronze: str) -> None:
    """A load that began without a common position, and was continued with one, has chunks from before it."""
    found = exact_positions(spark, bronze, "s1")
    assert {table: (at.epoch, at.offset) for (_, table), at in found.items()} == {
        "whole": (2, 500),
        "keyless": (2, 300),
        "loaded_again": (4, 900),
    }


def test_an_ad_hoc_snapshot_is_read_alone(spark: SparkSession, bronze: str) -> None:
    """Its rows are in an epoch of their own; the log continues in the one that it was planned in."""
    assert exact_positions(spark, bronze, "s1", (-2, 5)) == {("d", "keyless"): Position(5, FILE, 700)}
