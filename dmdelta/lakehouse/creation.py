"""Creates a Delta table, also after a killed process has left it half created."""

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from dmdelta.lakehouse.commits import USER_METADATA, tagged
from dmdelta.lakehouse.history import CommitTag
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.lakehouse.tables import UNFINISHED, is_unfinished, table_state
from dmdelta.model.spark_sql import literal, quote

_BY_PATH = re.compile(r"delta\.`(.+)`")
_TAKEN = re.compile(r"TABLE_OR_VIEW_ALREADY_EXISTS|DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION")


@dataclass(frozen=True, slots=True)
class NewTable:
    """The definition of a table.

    Attributes:
        columns: types (SQL) by name.
        partition, cluster: layout columns; at most one of them.
    """

    columns: Mapping[str, str]
    properties: Mapping[str, str]
    partition: Sequence[str] = ()
    cluster: Sequence[str] = field(default_factory=tuple)

    @property
    def definition(self) -> str:
        """The part after the name in a CREATE TABLE statement."""
        listed = ", ".join(f"{quote(name)} {kind}" for name, kind in self.columns.items())
        partitioned = f"PARTITIONED BY ({_list(self.partition)})" if self.partition else ""
        clustered = f"CLUSTER BY ({_list(self.cluster)})" if self.cluster else ""
        return f"({listed}) USING delta {partitioned}{clustered} TBLPROPERTIES ({self.properties_list})"

    @property
    def properties_list(self) -> str:
        return properties_list(self.properties)


def properties_list(properties: Mapping[str, str]) -> str:
    """Properties in a statement, between its parentheses."""
    return ", ".join(f"{literal(name)} = {literal(value)}" for name, value in properties.items())


def make_schema(spark: SparkSession, lakehouse: Lakehouse, name: str) -> None:
    """Create the schema `name` for tables in a catalog; a root folder needs none.

    Raises:
        LakehouseError: it cannot be created.
    """
    schema = lakehouse.schema_of(name)
    if schema is not None:
        with wrapped(schema, "creating"):
            spark.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")


def create_table(spark: SparkSession, table: str, new: NewTable, tag: CommitTag | None = None) -> None:
    """Create a table: in one commit, unless a killed process has left it half created.

    Args:
        table: its SQL identifier.
        tag: of the commit.

    Raises:
        ForeignTable: the path contains something else.
        LakehouseError: it cannot be created.
    """
    with wrapped(table, "creating"):
        try:
            with _tagged(spark, tag):
                spark.sql(f"CREATE TABLE {table} {new.definition}")
        except Exception as error:
            path = _BY_PATH.fullmatch(table)
            if path is None or not _TAKEN.search(str(error)) or not _is_half_made(spark, table, path[1]):
                raise
            _finish(spark, table, path[1], new, tag)


def _is_half_made(spark: SparkSession, table: str, path: str) -> bool:
    """Whether the log's folder exists without any commit, or only with those that `_finish` makes before its last one.

    Delta can neither find nor create a table in this state.
    """
    if table_state(spark, table) is not None:
        return False
    if is_unfinished(spark, table):
        return True
    # Hidden folders, such as the log's, are ignored: there is no other file.
    return spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(path).isEmpty()


def _finish(spark: SparkSession, table: str, path: str, new: NewTable, tag: CommitTag | None) -> None:
    """A DataFrame can write the first commit where a statement cannot, but it cannot set properties.

    The last commit removes the mark of the others: a process that is killed before it leaves no table behind.
    """
    empty = spark.sql(f"SELECT {', '.join(f'CAST(NULL AS {kind}) AS {quote(n)}' for n, kind in new.columns.items())}")
    writer = empty.where("false").write.format("delta").partitionBy(*new.partition).option("userMetadata", UNFINISHED)
    # A previous attempt may have had other columns.
    writer.mode("overwrite").option("overwriteSchema", "true").save(path)
    if new.cluster:
        try:
            spark.conf.set(USER_METADATA, UNFINISHED)
            spark.sql(f"ALTER TABLE {table} CLUSTER BY ({_list(new.cluster)})")
        finally:
            spark.conf.unset(USER_METADATA)
    with _tagged(spark, tag):
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({new.properties_list})")


def _tagged(spark: SparkSession, tag: CommitTag | None) -> AbstractContextManager[None]:
    return tagged(spark, tag) if tag is not None else nullcontext()


def _list(columns: Sequence[str]) -> str:
    return ", ".join(map(quote, columns))
