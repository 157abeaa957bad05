"""Checks of exactly-once: silver against the source row by row, bronze against the server's own binlog."""

from collections.abc import Iterable

from pyspark.sql import SparkSession

from dmdelta.lakehouse.layout import Lakehouse
from tests.support.diff import assert_same
from tests.support.oracle import bronze_vs_binlog
from tests.support.task import Task


def assert_silver_equals_source(spark: SparkSession, task: Task) -> None:
    """Compare every table of the task's database, value by value."""
    tables = task.tables or [str(row[0]) for row in task.server.query("SHOW TABLES", database=task.database)]
    assert len(tables) >= 3
    assert_tables_equal_source(spark, task, tables)


def assert_tables_equal_source(spark: SparkSession, task: Task, tables: Iterable[str]) -> None:
    """Compare these tables of the task's database, value by value."""
    lakehouse = Lakehouse(root=str(task.root))
    assert_same(task.server, task.database, tables, lambda table: spark.table(lakehouse.silver(task.database, table)))


def assert_exactly_once(spark: SparkSession, task: Task, since: tuple[str, int]) -> None:
    """Check that silver equals the source, and that bronze has each row change of the binlog from `since` on once."""
    assert_silver_equals_source(spark, task)
    bronze = spark.table(Lakehouse(root=str(task.root)).bronze).where("op <> 'read'")  # not in the log
    wrong = bronze_vs_binlog(task.server, bronze, [task.database], since, task.tables)
    assert not wrong, "\n".join(wrong[:20])
