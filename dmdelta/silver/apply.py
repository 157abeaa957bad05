"""Applying: a range of bronze becomes commits of one silver table, the last of which names the range's end."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count

from pyspark.sql import SparkSession

from dmdelta.ddl.types import VERSION
from dmdelta.failpoint import CrashPoint, reach
from dmdelta.lakehouse.commits import CommitTag, OwnCommit, update
from dmdelta.lakehouse.place import Lakehouse, quote
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema
from dmdelta.silver.pieces import Piece, known_schema, plan_pieces, unfillable
from dmdelta.silver.plan import Mode, Step
from dmdelta.silver.steps import Batch, commits_of, facts_of, run_step
from dmdelta.silver.survey import TableEvents, silver_app, silver_position, structure_before, table_events
from dmdelta.silver.table import add_columns, assert_shape, create_silver, has_rows, silver_exists

__all__ = ["ApplyRequest", "ApplyResult", "Mode", "Step", "apply_table", "silver_app", "silver_position"]

STEP_BITS = 16
LAST_STEP = (1 << STEP_BITS) - 1
"""The step ordinal of the commit that completes a batch."""


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """What to apply: [begin, end) of one source table.

    Attributes:
        run: id of the process's run.
        batch: the landing batch that ends at `end`.
        known: the table's structure at `begin`, None to look it up.
        events: what the range holds (`tables_with_events`), None to look it up.
        applied: the transaction version of the table's newest own commit, None to look it up.
        safe_until: what begins before it may be in silver already; a commit that ends before it says so, too.
    """

    lakehouse: Lakehouse
    task: str
    source_id: str
    run: str
    schema: str
    table: str
    begin: Position
    end: Position
    batch: int
    mode: Mode = Mode.NORMAL
    known: TableSchema | None = None
    events: TableEvents | None = None
    applied: int | None = None
    safe_until: Position | None = None

    @property
    def name(self) -> tuple[str, str]:
        return (self.schema, self.table)

    @property
    def target(self) -> str:
        """The SQL identifier of the silver table."""
        return self.lakehouse.silver(self.schema, self.table)


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """What was done.

    Attributes:
        rows: row changes read from bronze, by op, before compaction.
        steps: the commits, in order.
        commit: the last one, None if nothing changed.
        structure: the source table's structure at the end, None if the log never told it.
    """

    schema: str
    table: str
    end: Position
    rows: Mapping[Op, int]
    steps: tuple[Step, ...]
    commit: OwnCommit | None
    structure: TableSchema | None

    @property
    def row_count(self) -> int:
        return sum(self.rows.values())

    @property
    def delta_version(self) -> int | None:
        """The silver table's Delta version after the last commit."""
        return self.commit.version if self.commit else None

    @property
    def table_info(self) -> str | None:
        return self.structure.to_json() if self.structure else None


@dataclass(slots=True)
class _Work:
    """What one call of apply_table knows and does."""

    spark: SparkSession
    request: ApplyRequest
    exists: bool
    ordinals: "count[int]"
    empty: bool = False
    steps: list[Step] = field(default_factory=list)
    rows: dict[Op, int] = field(default_factory=dict)
    commit: OwnCommit | None = None

    def tag(self, begin: Position, end: Position, *, last: bool) -> CommitTag:
        return _tag(self.request, LAST_STEP if last else next(self.ordinals), begin, end)


def last_tag(request: ApplyRequest) -> CommitTag:
    """The tag of the commit that completes a request."""
    return _tag(request, LAST_STEP, request.begin, request.end)


def _tag(request: ApplyRequest, ordinal: int, begin: Position, end: Position) -> CommitTag:
    version = (request.batch << STEP_BITS) | ordinal
    app = silver_app(request.task, request.source_id, request.schema, request.table)
    inherited = request.safe_until if request.safe_until is not None and end < request.safe_until else None
    return CommitTag(app, version, request.task, request.source_id, request.run, begin, end, safe_until=inherited)


def apply_table(spark: SparkSession, request: ApplyRequest) -> ApplyResult:
    """Apply a range to a silver table, making the table if it is not there.

    Every commit but the last of a range can be repeated; so after a crash anywhere, the same range from the newest own
    commit's end gives the same table.

    Args:
        spark: a session that no other writer uses at the time.

    Raises:
        ForeignTable: the table is not this task's.
        UnknownSchema: bronze does not tell the table's structure.
        UnsupportedSchemaChange: a DDL in the range is not followed; what is before it has been applied.
        Fenced: another run of this task applied the range.
        CommitConflict: another writer was faster; the call can be repeated.
        LakehouseError: a table cannot be read or written.
    """
    source, begin, end = request.source_id, request.begin, request.end
    work = _begin(spark, request)
    events = request.events or table_events(spark, request.lakehouse, source, request.name, begin, end)
    known = request.known or _look_up(work, events)
    waiting = deque(plan_pieces(request.name, known, events.structure, begin, end))
    if work.exists and request.known is None and waiting[0].schema is not None:
        assert_shape(spark, request.target, waiting[0].schema)
    whole = len(waiting) == 1 and waiting[0].end == end
    while waiting:
        piece = waiting.popleft()
        inside = (
            events if whole else table_events(spark, request.lakehouse, source, request.name, piece.begin, piece.end)
        )
        _apply_rows(work, piece, inside, last=piece.end == end and piece.failure is None)
        _change_structure(work, piece)
        if piece.failure is not None:
            # Nothing of the table is in silver: what it was before does not matter.
            waiting.extend(plan_pieces(request.name, None, piece.rest, piece.end, end))
    return ApplyResult(*request.name, end, work.rows, tuple(work.steps), work.commit, piece.schema)


def _begin(spark: SparkSession, request: ApplyRequest) -> _Work:
    exists = request.known is not None or silver_exists(spark, request.target, request.task, request.source_id)
    applied = request.applied
    if applied is None and exists:
        newest = silver_position(spark, request.lakehouse, request.task, request.source_id, request.name)
        applied = newest.tag.version if newest else None
    # After a crash between the commits of a batch its ordinals go on: Delta would skip one that it has seen.
    began = applied is not None and applied >> STEP_BITS == request.batch
    first = (applied & LAST_STEP) + 1 if began and applied is not None else 0
    return _Work(spark, request, exists, count(first))


def _look_up(work: _Work, events: TableEvents) -> TableSchema | None:
    request = work.request
    # A segment tells a structure before its first row; statements before that only matter to a table that is there.
    matter = events.structure if work.exists else [event for event in events.structure if event.op is Op.SCHEMA]
    if not events.groups and matter and matter[0].op is Op.SCHEMA:
        return None
    earlier = structure_before(work.spark, request.lakehouse, request.source_id, request.name, request.begin)
    # Statements that no row has followed yet were applied as they are written.
    return plan_pieces(request.name, None, earlier, request.begin, request.begin)[-1].schema


def _apply_rows(work: _Work, piece: Piece, events: TableEvents, *, last: bool) -> None:
    if not events.row_count and not events.read:
        return
    schema = known_schema(piece, work.request.name)
    if not work.exists:
        create_silver(work.spark, work.request.lakehouse, (work.request.task, work.request.source_id), schema)
        work.exists = work.empty = True
    if not events.row_count:
        return
    batch = Batch(
        work.spark,
        work.request.lakehouse.bronze,
        work.request.source_id,
        work.request.target,
        schema,
        piece.begin,
        piece.end,
        events,
        work.request.mode,
        work.empty,
    )
    facts, gone = facts_of(batch)
    commits = commits_of(batch, facts)
    for number, (part, step) in enumerate(commits, 1):
        final = number == len(commits)
        tag = work.tag(piece.begin, piece.end if final else piece.begin, last=final and last)
        reach(CrashPoint.SILVER_BEFORE_COMMIT)
        commit = run_step(part, step, tag, gone)
        work.commit = commit or work.commit
        if commit is not None:
            reach(CrashPoint.SILVER_AFTER_COMMIT if final and last else CrashPoint.SILVER_BETWEEN_COMMITS)
    work.steps += [step for _, step in commits]
    work.empty = False
    for op, rows in events.rows.items():
        work.rows[op] = work.rows.get(op, 0) + rows


def _change_structure(work: _Work, piece: Piece) -> None:
    if piece.failure is not None and work.exists:
        raise piece.failure
    if piece.change is None or not work.exists:
        return
    table, at = work.request.target, piece.end
    failure = unfillable(piece, work.request.name)
    if failure is not None and has_rows(work.spark, table):
        raise failure
    add_columns(work.spark, table, piece.change)
    filled = {quote(added.name): added.fill.sql for added in piece.change.columns if added.fill.sql}
    if filled:
        tag = work.tag(piece.begin, at, last=False)
        values = ", ".join(f"{name} = coalesce({name}, {value})" for name, value in filled.items())
        older = f"{VERSION} < named_struct('epoch', {at.epoch}, 'seq', {at.seq}L, 'row', 0)"
        unfilled = " OR ".join(f"{name} IS NULL" for name in filled)
        reach(CrashPoint.SILVER_BEFORE_COMMIT)
        commit = update(work.spark, table, values, f"{older} AND ({unfilled})", tag)
        if commit is not None:
            work.commit = commit
            reach(CrashPoint.SILVER_BETWEEN_COMMITS)
