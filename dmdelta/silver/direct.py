"""Rows that a snapshot read go straight to silver, past bronze."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import VariantType

from dmdelta.lakehouse.commits import append
from dmdelta.lakehouse.history import OwnCommit
from dmdelta.lakehouse.place import quote
from dmdelta.model.schema import TableSchema
from dmdelta.silver.apply import ApplyRequest, last_tag
from dmdelta.silver.extraction import converted, own_values
from dmdelta.silver.survey import silver_position
from dmdelta.silver.table import create_silver, silver_exists


def append_read(spark: SparkSession, request: ApplyRequest, schema: TableSchema, rows: DataFrame) -> OwnCommit | None:
    """Append rows as they were read, making the table if it is not there; None if that was done before.

    Args:
        request: the range that the rows are of, as an applier would be told.
        rows: first the table's columns in their order, as VARIANT or as silver has them; then epoch, seq, row and
            committed_at.

    Raises:
        ForeignTable: the table is not this task's.
        Fenced: another run of this task did it meanwhile.
        CommitConflict, LakehouseError: the table cannot be written.
    """
    if silver_exists(spark, request.target, request.task, request.source_id):
        newest = silver_position(spark, request.lakehouse, request.task, request.source_id, request.name)
        if newest is not None and newest.tag.end >= request.end:
            return None
        if newest is not None and newest.tag.end > request.begin:
            rows = rows.where(f"seq >= {newest.tag.end.seq}")  # a run that was killed had cut its ranges otherwise
    else:
        create_silver(spark, request.lakehouse, (request.task, request.source_id), schema)
    return append(spark, _silver_rows(rows, schema), request.target, last_tag(request))


def _silver_rows(rows: DataFrame, schema: TableSchema) -> DataFrame:
    read = zip(rows.schema.fields, schema.columns, strict=False)
    columns = [
        f"{converted(field.name, column) if isinstance(field.dataType, VariantType) else field.name} "
        f"AS {quote(column.name)}"
        for field, column in read
    ]
    return rows.selectExpr(*columns, *own_values())
