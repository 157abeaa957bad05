"""Reload: replace the rows of a silver table by those of an ad-hoc snapshot in bronze."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count

from pyspark.sql import SparkSession

from dmdelta.changelog.ranges import of_source, of_table
from dmdelta.errors import SchemaError
from dmdelta.lakehouse.commits import CommitTag, overwrite
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema
from dmdelta.silver.apply.context import ApplyContext
from dmdelta.silver.apply.gate import check_reload
from dmdelta.silver.apply.request import STEP_BITS, ApplyRequest
from dmdelta.silver.apply.row_checks import no_checks
from dmdelta.silver.apply.shard_ddl import join_shard, lacks_ignored
from dmdelta.silver.apply.shard_merge import seen_among
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.table.state import silver_position
from dmdelta.silver.table.table import Condition, has_shape, merged_table_columns, open_silver, restore_clustering
from dmdelta.silver.table.target import Target


@dataclass(frozen=True, slots=True)
class ReloadRequest:
    """A table to reload, from which snapshot, and the position from which its log is applied.

    Attributes:
        epoch: the epoch of the snapshot's rows in bronze.
        resume_position: the position from which the log is applied.
        safe_until: the position up to which the log may overlap the snapshot; None if there is no overlap.
    """

    context: SilverContext
    schema: TableSchema
    epoch: int
    resume_position: Position
    safe_until: Position | None

    @property
    def target(self) -> Target:
        """The silver table.

        Raises:
            ConfigError: two routes match the source table.
        """
        return self.context.table(self.schema.name)


@dataclass(frozen=True, slots=True)
class Reloaded:
    """The result of a reload.

    Attributes:
        evaluated: the number of rows that were evaluated; 0 without expectations.
        failures: the number of failing rows by the name of the expectation.
    """

    evaluated: int
    failures: Mapping[str, int]


def reload_table(spark: SparkSession, request: ReloadRequest) -> Reloaded:
    """Replace a silver table's rows by those of a snapshot, in one commit. Creates the table if it does not exist.

    The table gets the source's columns. Idempotent until the log is applied to the table again.

    Raises:
        ForeignTable: the table belongs to another task.
        SchemaError: a merged table waits for other shards to get the columns of this one.
        QualityError: rows fail an expectation that stops the table.
        Fenced: another run of this task wrote to it.
        LakehouseError: it cannot be read or written.
    """
    target, schema, bronze = request.target, request.schema, request.target.context.lakehouse.bronze
    open_silver(spark, target, schema)
    # A merged table keeps its columns, because other shards use them.
    same = target.merged or has_shape(spark, target, schema)
    leaves_out = target.merged and _join(spark, request)
    newest = silver_position(spark, target)
    with wrapped(bronze, "reading"):
        rows = spark.sql(
            f"SELECT * FROM {bronze} WHERE {of_source(target.context.source_id)} AND {of_table(*target.source)} "
            f"AND epoch = {request.epoch} AND op = 'read'"
        )
    tag = CommitTag(
        app=target.app,
        version=newest.tag.version + 1 if newest else 1,
        task=target.context.task,
        source=target.context.source_id,
        run=request.context.run,
        begin=request.resume_position,
        end=request.resume_position,
        safe_until=request.safe_until,
    )
    seen = (
        seen_among(target, schema, merged_table_columns(spark, target), missing_too=leaves_out)
        if target.merged
        else target.silver_schema(schema)
    )
    guarded = check_reload(spark, rows, seen, request.context, target)
    overwrite(spark, guarded.rows, target.place, tag, columns_too=not same, among=target.own_rows)
    if not same:
        restore_clustering(spark, target.place, seen)
    return Reloaded(guarded.evaluated, guarded.failures)


def _join(spark: SparkSession, request: ReloadRequest) -> bool:
    """Alter a merged table so that it can hold the rows of the shard.

    Returns:
        Whether it lacks columns instead, because statements on the shard were ignored since it joined: it remains so.
    """
    target, newest = request.target, silver_position(spark, request.target)
    changing = ApplyRequest(
        context=replace(request.context, checks=no_checks),
        schema=request.schema.schema,
        table=request.schema.table,
        begin=request.resume_position,
        end=request.resume_position,
        batch=(newest.tag.version >> STEP_BITS) + 1 if newest else 0,
    )
    began_with = newest.tag if newest is not None else None
    work = ApplyContext(spark, changing, Condition.PRESENT, count(), began_with=began_with)
    if lacks_ignored(work, request.resume_position):
        request.context.shards.set_schema(target.route.name, target.shard, request.schema)
        return True
    waits = join_shard(work, request.schema, request.resume_position)
    if waits is not None:
        raise SchemaError(
            f"{target.shard} has other columns than the shards in {target.place}",
            hint="ALTER the shards to the same columns, or use shard-mode: optimistic",
        )
    return False
