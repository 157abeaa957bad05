"""Tables accessed with Spark: in catalogs, in object stores, and on clusters."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention
from pyspark.sql import types as T  # noqa: N812 - Spark's convention

from dmdelta.lakehouse.access.commit_log import Commit
from dmdelta.lakehouse.access.commit_tag import CommitTag, OwnCommit
from dmdelta.lakehouse.access.interface import Comparison, Condition, MetadataRow, NewestBy, RowCondition, metadata_row
from dmdelta.lakehouse.commits import append
from dmdelta.lakehouse.history import spark_commits
from dmdelta.lakehouse.spark_errors import is_absent, wrapped
from dmdelta.model.spark_sql import literal, quote


@dataclass(frozen=True, slots=True)
class SparkTable:
    """The table with an SQL identifier. Implements `MetadataAccess`; one thread at a time uses the session.

    Attributes:
        columns: of the rows to append; a table of an older version may lack some until it is created again.
    """

    spark: SparkSession
    table: str
    columns: Mapping[str, T.DataType]

    def commits(self, limit: int | None) -> list[Commit]:
        """The newest `limit` commits, newest first.

        Raises:
            LakehouseError: the table cannot be read.
        """
        return spark_commits(self.spark, self.table, limit)

    def newest(self, by: NewestBy, conditions: Sequence[Condition] = ()) -> list[MetadataRow]:
        """The newest row of each key among those that fulfil all conditions.

        Raises:
            LakehouseError: the table cannot be read.
        """

        def newest(rows: DataFrame) -> DataFrame:
            whole = F.struct(*(F.col(quote(name)) for name in rows.columns))
            found = rows.groupBy(*by.keys).agg(F.max_by(whole, by.order).alias("newest"))
            return found.where("newest IS NOT NULL").select("newest.*")  # without keys there is always a row

        return self._collect(
            lambda rows: newest(_filtered(rows, [*conditions, Condition(by.order, Comparison.NOT_NULL)]))
        )

    def rows(self, conditions: Sequence[Condition] = (), columns: Sequence[str] | None = None) -> list[MetadataRow]:
        """The rows that fulfil all conditions, in no particular order; only these columns, or all.

        Raises:
            LakehouseError: the table cannot be read.
        """
        return self._collect(
            lambda rows: _filtered(rows, conditions).select(*(rows.columns if columns is None else columns))
        )

    def append(self, rows: Sequence[Mapping[str, Any]], tag: CommitTag | None) -> OwnCommit | None:
        """Append rows in one commit and one file; columns that a row does not contain are NULL.

        Raises:
            Fenced: another run committed under the tag's app at or after its version.
            LakehouseError: the commit failed.
        """
        frame = metadata_frame(self.spark, self.columns, rows)
        if tag is not None:
            return append(self.spark, frame, self.table, tag)
        with wrapped(self.table, "appending to"):
            frame.writeTo(self.table).append()
        return None

    def delete(self, condition: RowCondition) -> None:
        """Delete the rows that fulfil a condition.

        Raises:
            CommitConflict, LakehouseError: the table cannot be written.
        """
        with wrapped(self.table, "deleting from"):
            self.spark.sql(f"DELETE FROM {self.table} WHERE {condition(literal)}").collect()

    def compact(self) -> tuple[int, int]:
        """Rewrite small files into large ones. Returns the numbers of removed and added files.

        Raises:
            LakehouseError: the table cannot be written.
        """
        return rewrite_files(self.spark, self.table, f"OPTIMIZE {self.table}")

    def _collect(self, plan: Callable[[DataFrame], DataFrame]) -> list[MetadataRow]:
        with wrapped(self.table, "reading"):
            try:
                found = plan(self.spark.sql(f"SELECT * FROM {self.table}")).collect()
            except Exception as error:
                if is_absent(error):
                    return []
                raise
        return [metadata_row(row.asDict()) for row in found]


def rewrite_files(spark: SparkSession, table: str, statement: str) -> tuple[int, int]:
    """Run a statement that rewrites a table's files. Returns the numbers of removed and added files.

    Raises:
        LakehouseError: the table cannot be written.
    """
    with wrapped(table, "compacting"):
        return removed_and_added(spark, statement)


def removed_and_added(spark: SparkSession, statement: str) -> tuple[int, int]:
    """As `rewrite_files`, with Spark's own errors."""
    rows = spark.sql(statement).select("metrics.numFilesRemoved", "metrics.numFilesAdded").collect()
    return sum(row[0] for row in rows), sum(row[1] for row in rows)


def metadata_frame(
    spark: SparkSession, columns: Mapping[str, T.DataType], rows: Sequence[Mapping[str, Any]]
) -> DataFrame:
    """Rows to append, in one file; columns that a row does not contain are NULL."""
    schema = T.StructType([T.StructField(name, kind) for name, kind in columns.items()])
    return spark.createDataFrame([tuple(row.get(name) for name in columns) for row in rows], schema).coalesce(1)


def _filtered(rows: DataFrame, conditions: Sequence[Condition]) -> DataFrame:
    for condition in conditions:
        rows = rows.where(_column(rows, condition))
    return rows


def _column(rows: DataFrame, condition: Condition) -> Column:
    if condition.column not in rows.columns:
        return F.lit(condition.comparison is Comparison.NULL)
    column = F.col(quote(condition.column))
    if condition.comparison is Comparison.NULL:
        return column.isNull()
    if condition.comparison is Comparison.NOT_NULL:
        return column.isNotNull()
    if condition.comparison is Comparison.BELOW:
        return column < condition.values[0]
    among = column.isin(*condition.values)
    return among if condition.comparison is Comparison.ONE_OF else ~among
