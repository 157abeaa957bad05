"""Rows that a snapshot read go straight to silver, past bronze."""

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
    """Up to where of its snapshot a table is, None for nowhere: it is made then.

    Raises:
        ForeignTable: the table is not this task's.
        LakehouseError: it cannot be read or made.
    """
    if not open_silver(spark, request.target, schema):
        return None
    newest = silver_position(spark, request.target)
    return newest.tag.end if newest else None


def append_read(
    spark: SparkSession, request: ApplyRequest, schema: TableSchema, rows: DataFrame, done: Position | None
) -> OwnCommit | None:
    """Append rows as they were read; None if that was done before.

    Args:
        request: the range that the rows are of, as an applier would be told.
        rows: first the table's columns in their order, as VARIANT or as silver has them; then epoch, seq, row and
            committed_at.
        done: up to where the table is (`reached`).

    Raises:
        Fenced: another run of this task did it meanwhile.
        CommitConflict, LakehouseError: the table cannot be written.
    """
    if done is not None and done >= request.end:
        return None
    if done is not None and done > request.begin:
        rows = rows.where(f"seq >= {done.seq}")  # a run that was killed had cut its ranges otherwise
    target = request.target
    return append(spark, read_rows_of(rows, schema, target), target.place, last_tag(request))


def read_rows_of(rows: DataFrame, schema: TableSchema, target: Target) -> DataFrame:
    """Rows as `append_read` is given them, as the silver table has them."""
    read = zip(rows.schema.fields, schema.columns, strict=False)
    columns = [
        f"{converted(field.name, column) if isinstance(field.dataType, VariantType) else field.name} "
        f"AS {quote(column.name)}"
        for field, column in read
    ]
    return rows.selectExpr(*columns, *target.added, *own_values())
