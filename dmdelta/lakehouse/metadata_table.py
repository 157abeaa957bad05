"""Tables in dm_meta: created when first needed, owned by their task, append-only."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import types as T  # noqa: N812 - Spark's convention

from dmdelta.errors import CommitConflict, ForeignTable
from dmdelta.lakehouse.creation import NewTable, create_table, make_schema
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.spark_errors import is_absent, wrapped
from dmdelta.lakehouse.tables import OWNER, table_state

Columns = Mapping[str, T.DataType]
_CREATING = threading.Lock()
"""The sources of a task share tables, and meet when the first rows of both are to be written."""
COMPACT_EVERY = 100
"""Appends after which a table is compacted, where its store asks for it: each makes a small file."""


@dataclass(frozen=True, slots=True)
class MetadataTable:
    """A table that each task may have in dm_meta.

    Attributes:
        name: without the task's name, which precedes it.
        keys: of the rows with equal values in these columns, the newest counts.
        order: the column by which a row is newer than another one.
    """

    name: str
    columns: Columns
    keys: tuple[str, ...] = ()
    order: str = "updated_at"

    def place(self, lakehouse: Lakehouse, task: str) -> str:
        """The SQL identifier of a task's table."""
        return lakehouse.metadata(f"{task}_{self.name}")

    def of(self, spark: SparkSession, lakehouse: Lakehouse, task: str) -> "TaskMetadata":
        """A task's table. It uses the session as it is: one thread at a time."""
        return TaskMetadata(self, spark, lakehouse, task)


@dataclass(frozen=True, slots=True)
class TaskMetadata:
    """A table in dm_meta that belongs to one task. Rows are only ever appended."""

    kind: MetadataTable
    spark: SparkSession
    lakehouse: Lakehouse
    task: str

    @property
    def place(self) -> str:
        """Its SQL identifier."""
        return self.kind.place(self.lakehouse, self.task)

    def create(self) -> bool:
        """Create it if it does not exist; add columns that an older version lacks.

        Returns:
            True if it existed.

        Raises:
            ForeignTable: the existing table does not belong to this task.
            LakehouseError: it cannot be created.
        """
        return create_metadata(self.spark, self.lakehouse, self.place, self.kind.columns, self.task)

    def frame(self, rows: Sequence[Mapping[str, Any]]) -> DataFrame:
        """Rows to append, in one file; columns that a row does not contain are NULL."""
        return metadata_frame(self.spark, self.kind.columns, rows)

    def append(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows in one commit. The table has to exist.

        Raises:
            LakehouseError: the commit failed.
        """
        with wrapped(self.place, "appending to"):
            self.frame(rows).writeTo(self.place).append()

    def compact(self) -> None:
        """Compact it.

        Raises:
            LakehouseError: it cannot be compacted.
        """
        with wrapped(self.place, "compacting"):
            self.spark.sql(f"OPTIMIZE {self.place}").collect()

    def newest(self, condition: str = "true") -> list[Row]:
        """The newest row of each key among those that fulfil a condition (SQL); empty if the table does not exist.

        Raises:
            LakehouseError: it cannot be read.
        """
        grouped = f"GROUP BY {', '.join(self.kind.keys)}" if self.kind.keys else ""
        query = f"SELECT max_by(struct(*), {self.kind.order}) AS newest FROM {self.place} WHERE {condition} {grouped}"
        return [row["newest"] for row in self.query(query) if row["newest"] is not None]

    def query(self, query: str) -> list[Row]:
        """The result of a query on it; empty if the table does not exist.

        Raises:
            LakehouseError: it cannot be read.
        """
        return metadata_rows(self.spark, self.place, query)


def utc(moment: datetime) -> datetime:
    """A timestamp of Spark, which is in this machine's zone without saying so, in UTC."""
    return moment.astimezone(timezone.utc)


def create_metadata(spark: SparkSession, lakehouse: Lakehouse, table: str, columns: Columns, task: str) -> bool:
    """Create a table in dm_meta (`table`: its SQL identifier) if it does not exist; add columns that an older version
    lacks.

    Returns:
        True if it existed.

    Raises:
        ForeignTable: the existing table does not belong to this task.
        LakehouseError: it cannot be created.
    """
    with _CREATING:
        existing = table_state(spark, table)
        if existing is None:
            _create(spark, lakehouse, table, columns, task)
            return False
        existing.assert_owned(table, task)
        _widen(spark, table, columns)
        return True


def _create(spark: SparkSession, lakehouse: Lakehouse, table: str, columns: Columns, task: str) -> None:
    kinds = {name: kind.simpleString() for name, kind in columns.items()}
    make_schema(spark, lakehouse, lakehouse.metadata_name)
    try:
        create_table(spark, table, NewTable(kinds, {"delta.checkpointInterval": "50", OWNER: task}))
    except (ForeignTable, CommitConflict):
        existing = table_state(spark, table)  # another process may have created it meanwhile
        if existing is None:
            raise
        existing.assert_owned(table, task)


def _widen(spark: SparkSession, table: str, columns: Columns) -> None:
    """Add those of `columns` that a table of an older version lacks; NULL in existing rows."""
    with wrapped(table, "adding columns to"):
        existing = spark.sql(f"SELECT * FROM {table}").columns
        missing = [f"{name} {kind.simpleString()}" for name, kind in columns.items() if name not in existing]
        if missing:
            spark.sql(f"ALTER TABLE {table} ADD COLUMNS ({', '.join(missing)})")


def metadata_rows(spark: SparkSession, table: str, query: str) -> list[Row]:
    """The result of a query on a table in dm_meta; empty if the table does not exist.

    Raises:
        LakehouseError: it cannot be read.
    """
    with wrapped(table, "reading"):
        try:
            return spark.sql(query).collect()
        except Exception as error:
            if is_absent(error):
                return []
            raise


def metadata_frame(spark: SparkSession, columns: Columns, rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    """Rows to append, in one file; columns that a row does not contain are NULL."""
    schema = T.StructType([T.StructField(name, kind) for name, kind in columns.items()])
    return spark.createDataFrame([tuple(row.get(name) for name in columns) for row in rows], schema).coalesce(1)
