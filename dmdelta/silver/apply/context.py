"""The state of one `apply_table` call: what is known about the silver table, and what the call has committed."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from pyspark.sql import SparkSession

from dmdelta.failpoint import CrashPoint, reach
from dmdelta.lakehouse.changes import Change
from dmdelta.lakehouse.commits import CommitTag, OwnCommit, make_change
from dmdelta.lakehouse.history import own_commits
from dmdelta.lakehouse.maintenance.positions import REPAIR
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema
from dmdelta.sharding import Columns, Waiting
from dmdelta.silver.apply.request import LAST_STEP, STEP_BITS, ApplyRequest, ApplyResult, RowsPath, tag_of
from dmdelta.silver.apply.shard_merge import seen_among
from dmdelta.silver.rows.strategy import Step
from dmdelta.silver.schema.ddl_effects import TableLog
from dmdelta.silver.schema.evolution import plan_creation
from dmdelta.silver.schema.lookup import table_log
from dmdelta.silver.schema.range_profile import StructureEvent
from dmdelta.silver.table.state import silver_position
from dmdelta.silver.table.table import (
    Condition,
    create_silver,
    has_shape,
    merged_table_columns,
    seen_by,
    silver_condition,
)
from dmdelta.silver.table.target import Target


@dataclass(slots=True)
class ApplyContext:
    """An `apply_table` call in progress.

    Attributes:
        ordinals: the ordinals of the next commits.
        ddl_applied_to: the statements up to this position are applied; None: none of the range.
        empty: this call created the table, and it has no rows.
        began_after: the table's Delta version after its newest own commit before the call; None: unknown.
        began_with: the tag of that commit; None: there is none, or it was not looked up.
        existing: the columns of a merged table; None if they have to be looked up.
    """

    spark: SparkSession
    request: ApplyRequest
    condition: Condition
    ordinals: "count[int]"
    ddl_applied_to: Position | None = None
    empty: bool = False
    steps: list[Step] = field(default_factory=list)
    rows: dict[Op, int] = field(default_factory=dict)
    clashes: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    existing: Columns | None = None
    commit: OwnCommit | None = None
    began_after: int | None = None
    began_with: CommitTag | None = None
    path: RowsPath | None = None

    @property
    def after(self) -> int | None:
        """The table's Delta version after its newest own commit; None: unknown."""
        return self.commit.version if self.commit else self.began_after

    def read_from(self, path: RowsPath) -> None:
        """Record where the rows of a schema range were read from: bronze, if any were."""
        self.path = path if self.path is None or path is RowsPath.BRONZE else self.path

    def tag(self, begin: Position, end: Position, *, last: bool) -> CommitTag:
        """The tag of a commit that leaves the table at `end`, after the statement there if that has been applied."""
        tag = tag_of(self.request, LAST_STEP if last else next(self.ordinals), begin, end)
        return replace(tag, rest=()) if end == self.ddl_applied_to else tag

    def log(self, structure: Sequence[StructureEvent]) -> TableLog:
        """The part of the log that determines the table's structure."""
        return table_log(self.spark, self.request.context, self.request.name, structure, self.ddl_applied_to)

    def silver_schema(self, schema: TableSchema) -> TableSchema:
        """A structure in silver, without the columns that silver lacks because a statement was ignored.

        Raises:
            SchemaError: silver lacks a key column, or a column has another type.
        """
        target, rules = self.request.target, self.request.context.rules
        if target.merged:
            leaves_out = rules.leaves_columns_out(self.request.name)
            return seen_among(target, schema, self.columns(), missing_too=leaves_out)
        return seen_by(self.spark, target, schema) if rules.leave_statements_out else target.silver_schema(schema)

    def columns(self) -> Columns:
        """The columns of a merged table. Cached between changes, which is safe because shards write it in turns.

        Raises:
            LakehouseError: it cannot be read.
        """
        if self.existing is None:
            self.existing = merged_table_columns(self.spark, self.request.target)
        return self.existing

    def make(self, changes: Sequence[Change], begin: Position, at: Position, *, statement: bool = True) -> None:
        """Commit the changes that apply the statement at `at`. Each commit records the remaining changes.

        Args:
            statement: False if the changes belong to no statement: the commits then record no remaining changes,
                because planning them again gives those that are missing.

        Raises:
            Fenced, CommitConflict, LakehouseError: as `dmdelta.lakehouse.commits`.
        """
        self.existing = None
        for number, change in enumerate(changes, 1):
            reach(CrashPoint.SILVER_BEFORE_CHANGE)
            rest = tuple(changes[number:]) if statement else None
            tag = replace(self.tag(begin, at, last=False), rest=rest)
            commit = make_change(self.spark, self.request.target.place, change, tag)
            if commit is not None:
                self.commit = commit
                reach(CrashPoint.SILVER_AFTER_CHANGE)

    def result(self, structure: TableSchema | None, waits: Waiting | None = None) -> ApplyResult:
        """The result, up to the range's end or to the statement that the table waits with."""
        end = waits.position if waits else self.request.end
        steps = tuple(self.steps)
        return ApplyResult(
            schema=self.request.name[0],
            table=self.request.name[1],
            end=end,
            rows=self.rows,
            steps=steps,
            commit=self.commit,
            structure=structure,
            waits=waits,
            clashes=self.clashes,
            failures=dict(self.failures),
            path=self.path,
        )


def open_context(spark: SparkSession, request: ApplyRequest) -> ApplyContext:
    """Look up the table's position, and complete a statement that an earlier run has applied partially.

    Raises:
        ForeignTable: the table belongs to another task.
        Fenced, CommitConflict, LakehouseError: as `dmdelta.lakehouse.commits`.
    """
    if request.known is not None:
        condition, applied, newest, after = Condition.PRESENT, request.applied, None, request.after
    else:
        condition = silver_condition(spark, request.target)
        existing = condition is not Condition.ABSENT
        newest = request.newest or silver_position(spark, request.target) if existing else None
        applied, after = (newest.tag.version, newest.version) if newest else (None, None)
    # After a crash between the commits of a batch the ordinals continue: Delta skips transaction versions that it has.
    resumed = applied is not None and applied >> STEP_BITS == request.batch
    first = (applied & LAST_STEP) + 1 if resumed and applied is not None else 0
    work = ApplyContext(spark, request, condition, count(first), request.ddl_applied_to, began_after=after)
    work.began_with = newest.tag if newest is not None else None
    if newest is not None and newest.tag.rest is not None:
        work.ddl_applied_to = max(newest.tag.end, request.ddl_applied_to or newest.tag.end)
        if newest.tag.rest:
            work.make(newest.tag.rest, newest.tag.begin, newest.tag.end)
            work.condition = silver_condition(spark, request.target)
    return work


def finish_statement(spark: SparkSession, target: Target, run: str) -> None:
    """Complete a statement that an earlier run has applied partially to a merged table, for any shard.

    Shards take turns, so the newest commit of any shard is that of the statement.

    Raises:
        Fenced, CommitConflict, LakehouseError: as `dmdelta.lakehouse.commits`.
    """
    tag = newest_applied(commit.tag for commit in own_commits(spark, target.place, None))
    rest = tag.rest if tag is not None else None
    if tag is None or not rest:
        return
    for number, change in enumerate(rest, 1):
        following = replace(tag, version=tag.version + number, run=run, rest=rest[number:], again=False)
        make_change(spark, target.place, change, following)


def newest_applied(tags: Iterable[CommitTag]) -> CommitTag | None:
    """The newest of a merged table's commits that applied something of a shard's log.

    Repairs, and maintenance that repeats the positions of other shards, may follow it without finishing its statement.

    Args:
        tags: those of all applications, newest first.
    """
    repeated: CommitTag | None = None
    for tag in tags:
        if tag.app.endswith(REPAIR) or tag.repaired:
            continue
        if not tag.again:
            return tag
        repeated = repeated or tag
    return repeated


def begin_table(work: ApplyContext, schema: TableSchema, at: Position) -> None:
    """Create the table at position `at` if it does not exist, or recreate it if its source table was dropped.

    Raises:
        ForeignTable, SchemaError, LakehouseError: as `create_silver`.
    """
    if work.condition is Condition.PRESENT:
        return
    request = work.request
    if work.condition is Condition.ABSENT:
        reach(CrashPoint.SILVER_BEFORE_CHANGE)
        tag = replace(work.tag(at, at, last=False), rest=())
        create_silver(work.spark, request.target, schema, tag)
        work.empty = True
    else:
        fits = has_shape(work.spark, request.target, schema)
        work.make(plan_creation(request.target.silver_schema(schema), at, fits=fits), at, at)
    work.condition = Condition.PRESENT
