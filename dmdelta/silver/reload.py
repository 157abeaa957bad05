"""A silver table made anew of what a snapshot of its source table has left in bronze."""

from dataclasses import dataclass

from pyspark.sql import SparkSession

from dmdelta.lakehouse.commits import CommitTag, OwnCommit, overwrite
from dmdelta.lakehouse.foreign import wrapped
from dmdelta.lakehouse.place import Lakehouse
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema
from dmdelta.silver.compaction import inserted_rows
from dmdelta.silver.ranges import of_source, of_table
from dmdelta.silver.survey import silver_app, silver_position
from dmdelta.silver.table import cluster_again, create_silver, has_shape, silver_exists


@dataclass(frozen=True, slots=True)
class ReloadRequest:
    """Which table, from what, and where its log goes on.

    Attributes:
        run: id of the process's run.
        epoch: of the snapshot, whose rows in bronze are the table.
        goes_on: the position that the log is applied from.
        safe_until: what of the log begins before it may be in the snapshot already; None: nothing.
    """

    lakehouse: Lakehouse
    task: str
    source_id: str
    run: str
    schema: TableSchema
    epoch: int
    goes_on: Position
    safe_until: Position | None


def reload_table(spark: SparkSession, request: ReloadRequest) -> OwnCommit:
    """Put a snapshot's rows in the place of a silver table's, in one commit, making the table if it is not there.

    Its columns become the source's. Can be repeated as long as nothing was applied to the table since.

    Raises:
        ForeignTable: the table is not this task's.
        Fenced: another run of this task wrote to it meanwhile.
        LakehouseError: it cannot be read or written.
    """
    name, schema = request.schema.name, request.schema
    target, owner = request.lakehouse.silver(*name), (request.task, request.source_id)
    if not silver_exists(spark, target, *owner):
        create_silver(spark, request.lakehouse, owner, schema)
    same = has_shape(spark, target, schema)
    newest = silver_position(spark, request.lakehouse, request.task, request.source_id, name)
    with wrapped(request.lakehouse.bronze, "reading"):
        rows = spark.sql(
            f"SELECT * FROM {request.lakehouse.bronze} WHERE {of_source(request.source_id)} AND {of_table(*name)} "
            f"AND epoch = {request.epoch} AND op = 'read'"
        )
    tag = CommitTag(
        app=silver_app(request.task, request.source_id, *name),
        version=newest.tag.version + 1 if newest else 1,
        task=request.task,
        source=request.source_id,
        run=request.run,
        begin=request.goes_on,
        end=request.goes_on,
        safe_until=request.safe_until,
    )
    commit = overwrite(spark, inserted_rows(rows, schema), target, tag, columns_too=not same)
    if not same:
        cluster_again(spark, target, schema)
    return commit
