"""The two paths from log to silver: decoded on the driver and applied from memory, or on executors and from bronze."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timezone
from typing import Any
from unittest.mock import patch

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import VariantVal

from dmdelta.bronze import landing
from dmdelta.silver.apply.request import RowsPath
from tests.support.pipeline import Pipeline

TIMES = {"committed_at", "landed_at"}
LANDED = {"landed_at", "landed_on"}
"""The columns of bronze that differ between two landings."""


@contextmanager
def on_executors() -> Iterator[None]:
    """In this context, landing decodes on the executors, so it keeps nothing in memory."""
    with patch.object(landing, "takes_arrow", lambda _: False):
        yield


def exact_rows(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame without the columns of the landing, sorted; VARIANTs as their bytes."""
    return sorted(plain_rows(frame.drop(*LANDED)), key=repr)


def plain_rows(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame in Arrow's form: VARIANTs as their bytes, times of bronze with their zone.

    toArrow fails for VARIANT columns with NULL in Spark 4.2.
    """
    return [{name: _plain(name, value) for name, value in row.asDict().items()} for row in frame.collect()]


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, VariantVal):
        return {"value": bytes(value.value), "metadata": bytes(value.metadata)}
    if isinstance(value, bytearray):
        return bytes(value)
    return value.astimezone(timezone.utc) if name in TIMES and value is not None else value


def assert_same_rows(one: Sequence[dict[str, Any]], other: Sequence[dict[str, Any]], what: str) -> None:
    """
    Raises:
        AssertionError: rows differ.
    """
    assert len(one) == len(other), f"{what}: {len(one)} and {len(other)} rows"
    for mine, theirs in zip(one, other, strict=True):
        assert mine == theirs, f"{what}: {mine} and {theirs}"


def assert_same_bronze(memory: Sequence[dict[str, Any]], bronze: Sequence[dict[str, Any]]) -> None:
    """Check for equal rows, except that executors repeat structures in each batch: they do not know the previous batch.

    Raises:
        AssertionError: they differ.
    """
    rows, structures = zip(*(_parted(each) for each in (memory, bronze)), strict=True)
    assert_same_rows(rows[0], rows[1], "bronze")
    assert all(one in structures[1] for one in structures[0])
    known = [{(each["schema_name"], each["table_name"], each["ddl"]) for each in side} for side in structures]
    assert known[0] == known[1]


def _parted(rows: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    return [row for row in rows if row["op"] != "schema"], [row for row in rows if row["op"] == "schema"]


def assert_same(spark: SparkSession, memory: Pipeline, bronze: Pipeline, tables: Sequence[tuple[str, str]]) -> None:
    """Check that both pipelines have the same bronze and silver, and that each used its own path.

    Raises:
        AssertionError: they differ.
    """
    assert memory.paths[RowsPath.MEMORY], "nothing was applied from memory"
    assert set(bronze.paths) == {RowsPath.BRONZE}
    assert memory.refused.keys() == bronze.refused.keys()
    pair = [exact_rows(spark.table(each.lakehouse.bronze)) for each in (memory, bronze)]
    assert pair[0], "bronze has no rows"
    assert_same_bronze(*pair)
    for table in tables:
        frames = [each.silver(*table) for each in (memory, bronze)]
        assert frames[0].schema == frames[1].schema, f"{table}: the structures differ"
        pair = [exact_rows(frame) for frame in frames]
        assert_same_rows(pair[0], pair[1], ".".join(table))


def both(
    spark: SparkSession, make: Callable[[str], Pipeline], work: Callable[[Pipeline], None]
) -> tuple[Pipeline, Pipeline]:
    """Two pipelines after the same work, one with memory, one without.

    Args:
        make: a pipeline by its name.
    """
    memory, bronze = make("memory"), make("bronze")
    bronze.memory_bytes = 0
    work(memory)
    with on_executors():
        work(bronze)
    return memory, bronze
