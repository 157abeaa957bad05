"""Rows that a snapshot read go straight to silver, past bronze."""

from pyspark.sql import DataFrame, SparkSession

from dmdelta.lakehouse.commits import append
from dmdelta.lakehouse.history import OwnCommit
from dmdelta.model.schema import TableSchema
from dmdelta.silver.apply import ApplyRequest, last_tag
from dmdelta.silver.compaction import inserted_rows
from dmdelta.silver.survey import silver_position
from dmdelta.silver.table import create_silver, silver_exists


def append_read(spark: SparkSession, request: ApplyRequest, schema: TableSchema, rows: DataFrame) -> OwnCommit | None:
    """Append rows as the data source gives them, making the table if it is not there; None if that was done before.

    Args:
        request: the range that the rows are of, as an applier would be told.
        rows: bronze rows with op = read, of this table only.

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
    return append(spark, inserted_rows(rows, schema), request.target, last_tag(request))
