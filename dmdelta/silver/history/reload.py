"""A silver table made anew of what a snapshot of its source table has left in bronze."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count

from pyspark.sql import SparkSession

from dmdelta.changelog.ranges import of_source, of_table
from dmdelta.errors import SchemaError
from dmdelta.lakehouse.commits import CommitTag, OwnCommit, overwrite
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema
from dmdelta.silver.apply.context import ApplyContext
from dmdelta.silver.apply.gate import check_reload
from dmdelta.silver.apply.request import STEP_BITS, ApplyRequest
from dmdelta.silver.apply.row_checks import no_checks
from dmdelta.silver.apply.shard_ddl import join_shard
from dmdelta.silver.apply.shard_merge import seen_among
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.table.state import silver_position
from dmdelta.silver.table.table import Condition, cluster_again, columns_there, has_shape, open_silver
from dmdelta.silver.table.target import Target


@dataclass(frozen=True, slots=True)
class ReloadRequest:
    """Which table, from what, and where its log goes on.

    Attributes:
        epoch: of the snapshot, whose rows in bronze are the table.
        resume_position: the position that the log is applied from.
        safe_until: what of the log begins before it may be in the snapshot already; None: nothing.
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
    """What was done.

    Attributes:
        judged: rows that were judged; 0 if nothing is expected of them.
        failures: rows that fail what they should fulfil, by its name.
    """

    commit: OwnCommit
    judged: int
    failures: Mapping[str, int]


def reload_table(spark: SparkSession, request: ReloadRequest) -> Reloaded:
    """Put a snapshot's rows in the place of a silver table's, in one commit, making the table if it is not there.

    Its columns become the source's. Can be repeated as long as nothing was applied to the table since.

    Raises:
        ForeignTable: the table is not this task's.
        SchemaError: a merged table waits for other shards to have the columns of this one.
        QualityError: rows fail what stops their table.
        Fenced: another run of this task wrote to it meanwhile.
        LakehouseError: it cannot be read or written.
    """
    target, schema, bronze = request.target, request.schema, request.target.context.lakehouse.bronze
    open_silver(spark, target, schema)
    # A merged table keeps its columns: its other shards need them.
    same = target.merged or has_shape(spark, target, schema)
    if target.merged:
        _join(spark, request)
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
    seen = seen_among(target, schema, columns_there(spark, target)) if target.merged else target.silver_schema(schema)
    guarded = check_reload(spark, rows, seen, target, request.context.checks(target, seen))
    commit = overwrite(spark, guarded.rows, target.place, tag, columns_too=not same, among=target.own_rows)
    if not same:
        cluster_again(spark, target.place, seen)
    return Reloaded(commit, guarded.judged, guarded.failures)


def _join(spark: SparkSession, request: ReloadRequest) -> None:
    """Have a merged table hold the rows of a shard that was read."""
    target, newest = request.target, silver_position(spark, request.target)
    changing = ApplyRequest(
        context=replace(request.context, checks=no_checks),
        schema=request.schema.schema,
        table=request.schema.table,
        begin=request.resume_position,
        end=request.resume_position,
        batch=(newest.tag.version >> STEP_BITS) + 1 if newest else 0,
    )
    waits = join_shard(
        ApplyContext(spark, changing, Condition.PRESENT, count()), request.schema, request.resume_position
    )
    if waits is not None:
        raise SchemaError(
            f"{target.shard} has other columns than the shards that go to {target.place}",
            hint="ALTER it, or the others, to have the same columns, or use shard-mode: optimistic",
        )
