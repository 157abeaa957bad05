"""Tables in dm_meta: created when first needed, owned by their task, append-only."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row, SparkSession
from pyspark.sql import types as T  # noqa: N812 - Spark's convention

from dmdelta.errors import CommitConflict, ForeignTable
from dmdelta.lakehouse.access.commit_tag import CommitTag, OwnCommit
from dmdelta.lakehouse.access.interface import Condition, MetadataAccess, MetadataRow, NewestBy, RowCondition, utc
from dmdelta.lakehouse.access.local_root import local_metadata
from dmdelta.lakehouse.access.object_store import ObjectMetadata, object_table
from dmdelta.lakehouse.access.spark import SparkTable
from dmdelta.lakehouse.creation import NewTable, create_table, make_schema
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.retention import FREQUENT
from dmdelta.lakehouse.spark_errors import is_absent, wrapped
from dmdelta.lakehouse.tables import OWNER, TableState, table_state
from dmdelta.logging import get_logger

if TYPE_CHECKING:
    from dmdelta.lakehouse.access.delta_rs.local_table import LocalTable

__all__ = [
    "COMPACT_EVERY",
    "MetadataRow",
    "MetadataTable",
    "TaskMetadata",
    "create_metadata",
    "metadata_rows",
    "utc",
]

log = get_logger(__name__)
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
    """A table in dm_meta that belongs to one task.

    Under a local root delta-rs reads and writes it, in every process; elsewhere Spark does. In an object store delta-rs
    reads it as long as the session is not started. Queries are Spark's.
    """

    kind: MetadataTable
    spark: SparkSession
    lakehouse: Lakehouse
    task: str

    @property
    def place(self) -> str:
        """Its SQL identifier."""
        return self.kind.place(self.lakehouse, self.task)

    @property
    def access(self) -> MetadataAccess:
        """The implementation that reads and writes it."""
        local = local_metadata(self.spark, self.place)
        if local is not None:
            return local
        with_spark, reader = SparkTable(self.spark, self.place, self.kind.columns), object_table(self.spark, self.place)
        return with_spark if reader is None else ObjectMetadata(reader, with_spark)

    def create(self) -> bool:
        """Create it if it does not exist; add columns that an older version lacks.

        Returns:
            True if it existed.

        Raises:
            ForeignTable: the existing table does not belong to this task.
            LakehouseError: it cannot be created.
        """
        local = local_metadata(self.spark, self.place)
        existed = None if local is None else _created_locally(local, self.kind.columns, self.task)
        if existed is not None:
            return existed
        return create_metadata(self.spark, self.lakehouse, self.place, self.kind.columns, self.task)

    def append(self, rows: Sequence[Mapping[str, Any]], tag: CommitTag | None = None) -> OwnCommit | None:
        """Append rows in one commit; columns that a row does not contain are NULL. The table has to exist.

        Args:
            tag: makes the append idempotent.

        Raises:
            Fenced: another run committed under the tag's app at or after its version.
            LakehouseError: the commit failed.
        """
        return self.access.append(rows, tag)

    def delete(self, condition: RowCondition) -> None:
        """Delete the rows that fulfil a condition.

        Raises:
            CommitConflict: another writer committed first in every attempt.
            LakehouseError: the table cannot be written.
        """
        self.access.delete(condition)

    def compact(self) -> None:
        """Compact it.

        Raises:
            LakehouseError: it cannot be compacted.
        """
        self.access.compact()

    def shorten(self, is_old: RowCondition | None) -> None:
        """Delete old rows (None: there are none), and compact it. If another writer commits first, nothing is done: the
        next time is soon enough.

        Raises:
            LakehouseError: the table cannot be written.
        """
        try:
            if is_old is not None:
                self.delete(is_old)
            self.compact()
        except CommitConflict:
            log.info("table not compacted: another writer was faster", table=self.place)

    def newest(self, *conditions: Condition) -> list[MetadataRow]:
        """The newest row of each key among those that fulfil all conditions; empty if the table does not exist.

        Raises:
            LakehouseError: it cannot be read.
        """
        return self.access.newest(NewestBy(self.kind.keys, self.kind.order), conditions)

    def version(self) -> int | None:
        """The table's newest version, if the look-up costs less than reading the table; None: it is unknown, or absent.

        Raises:
            LakehouseError: it cannot be read.
        """
        local = local_metadata(self.spark, self.place)
        return None if local is None else local.version()

    def rows(self, *conditions: Condition, columns: Sequence[str] | None = None) -> list[MetadataRow]:
        """The rows that fulfil all conditions, in no particular order; empty if the table does not exist.

        Args:
            columns: None for all.

        Raises:
            LakehouseError: it cannot be read.
        """
        return self.access.rows(conditions, columns)

    def query(self, query: str) -> list[Row]:
        """The result of a query (Spark SQL) on it; empty if the table does not exist.

        Raises:
            LakehouseError: it cannot be read.
        """
        return metadata_rows(self.spark, self.place, query)


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


def _created_locally(table: "LocalTable", columns: Columns, task: str) -> bool | None:
    """As `create_metadata`, without Spark; None if only Spark can tell what is in the folder, or complete it."""
    schema = T.StructType([T.StructField(name, kind) for name, kind in columns.items()]).json()
    with _CREATING:
        properties = table.properties()
        if properties is None:
            return False if table.create(schema, _properties(task)) else None
        if OWNER not in properties:
            return None
        TableState(properties).assert_owned(table.table, task)
        table.add_columns(schema)
        return True


def _properties(task: str) -> dict[str, str]:
    return {"delta.checkpointInterval": "50", **FREQUENT.properties, OWNER: task}


def _create(spark: SparkSession, lakehouse: Lakehouse, table: str, columns: Columns, task: str) -> None:
    kinds = {name: kind.simpleString() for name, kind in columns.items()}
    make_schema(spark, lakehouse, lakehouse.metadata_name)
    try:
        create_table(spark, table, NewTable(kinds, _properties(task)))
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
