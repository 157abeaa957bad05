"""The state of a source table at a position, as a query."""

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from dmdelta.ddl.types.silver_types import silver_columns
from dmdelta.errors import NotReadable, QualityError, SchemaError, SourceError
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.silver.live.memory_changes import MemoryChanges


@dataclass(frozen=True, slots=True)
class LiveState:
    """The rows of a source table at a position.

    Attributes:
        rows: with silver's columns; None: the table does not exist.
        is_empty: the table is known to have no rows.
        copies: how often the query contains the rows that it started from.
        queries: how many batches Spark compacts in the query.
        changes: changes that `rows` does not contain yet, except for statements; None outside of `LiveTail.after`.
    """

    rows: DataFrame | None
    is_empty: bool = False
    copies: int = 1
    queries: int = 0
    changes: MemoryChanges | None = None

    def complete(self) -> "LiveState":
        """The same state, with all changes in `rows`."""
        if self.changes is None:
            return self
        assert self.rows is not None
        return replace(self, rows=self.changes.added_to(self.rows), changes=None)


def not_readable(
    name: TableName, reason: str, last: Position | None, *, again_from: Position | None = None
) -> NotReadable:
    """The error for a table that cannot be read at a position.

    Args:
        last: the last position at which it can be read; None: unknown.
        again_from: it can be read from this position on; None: unknown.
    """
    hint = "wait until silver contains the change"
    if last is not None:
        hint = f"read it at {last} or before: --at {last}"
    elif again_from is not None:
        hint = f"read it at {again_from} or after: --at {again_from}"
    return NotReadable(f"{'.'.join(name)} cannot be read there: {reason}", hint=hint, **_readable(last))


def _readable(last: Position | None) -> dict[str, str]:
    return {"readable": str(last)} if last is not None else {}


def refused(name: TableName, error: SchemaError | QualityError | SourceError, last: Position) -> NotReadable:
    """The error for a table that cannot be read for another reason. `last`: as for `not_readable`."""
    return error if isinstance(error, NotReadable) else not_readable(name, error.message, last)


def no_rows(spark: SparkSession, schema: TableSchema) -> DataFrame:
    """A frame without rows with the columns of a structure in silver."""
    values = (f"CAST(NULL AS {kind}) AS {quote(name)}" for name, kind in silver_columns(schema).items())
    return spark.sql(f"SELECT {', '.join(values)} WHERE false")
