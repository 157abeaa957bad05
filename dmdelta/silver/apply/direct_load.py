"""Direct load: snapshot rows go to silver, bypassing bronze."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import VariantType

from dmdelta.changelog.extraction import converted, own_values
from dmdelta.lakehouse.commits import append
from dmdelta.lakehouse.history import OwnCommit
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.silver.apply.request import ApplyRequest, last_tag
from dmdelta.silver.table.state import silver_position
from dmdelta.silver.table.table import open_silver
from dmdelta.silver.table.target import Target


def reached(spark: SparkSession, request: ApplyRequest, schema: TableSchema) -> Position | None:
    """The position in its snapshot up to which a table is loaded; None if nothing is. Creates the table if necessary.

    Raises:
        ForeignTable: the table belongs to another task.
        LakehouseError: it cannot be read or created.
    """
    if not open_silver(spark, request.target, schema):
        return None
    newest = silver_position(spark, request.target)
    return newest.tag.end if newest else None


def append_read(
    spark: SparkSession, request: ApplyRequest, schema: TableSchema, rows: DataFrame, done: Position | None
) -> OwnCommit | None:
    """Append snapshot rows; None if an earlier commit contains them.

    Args:
        request: the range of the rows, as for `apply_table`.
        rows: the table's columns in order, as VARIANT or in silver's types; then epoch, seq, row and committed_at.
        done: the position up to which the table is loaded (`reached`).

    Raises:
        Fenced: another run of this task wrote the table.
        CommitConflict, LakehouseError: the table cannot be written.
    """
    if done is not None and done >= request.end:
        return None
    if done is not None and done > request.begin:
        rows = rows.where(f"seq >= {done.seq}")  # an interrupted run may have used other range boundaries
    target = request.target
    return append(spark, read_rows_of(rows, schema, target), target.place, last_tag(request))


def read_rows_of(rows: DataFrame, schema: TableSchema, target: Target) -> DataFrame:
    """The rows that `append_read` takes, with the silver table's columns."""
    read = zip(rows.schema.fields, schema.columns, strict=False)
    columns = [
        f"{converted(field.name, column) if isinstance(field.dataType, VariantType) else field.name} "
        f"AS {quote(column.name)}"
        for field, column in read
    ]
    return rows.selectExpr(*columns, *target.added, *own_values())
