"""Applying: a range of bronze becomes commits of one silver table, the last of which names the range's end."""

from pyspark.sql import SparkSession

from dmdelta.ddl.types.silver_types import silver_columns
from dmdelta.failpoint import CrashPoint, reach
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema
from dmdelta.sharding import Waiting
from dmdelta.silver.apply.context import ApplyContext, begin_table, open_context
from dmdelta.silver.apply.ddl import follow_statement
from dmdelta.silver.apply.gate import check_batch, forget_emptied
from dmdelta.silver.apply.key_conflicts import look_for_clashes
from dmdelta.silver.apply.request import ApplyRequest, ApplyResult
from dmdelta.silver.apply.row_filters import may_repeat, plan_counting
from dmdelta.silver.apply.shard_ddl import join_shard
from dmdelta.silver.rows.commits import Batch, commits_of, facts_of, run_step
from dmdelta.silver.schema.lookup import structure_at
from dmdelta.silver.schema.range_profile import TableEvents, table_events
from dmdelta.silver.schema.schema_ranges import SchemaRange, known_inside, known_schema, plan_schema_ranges
from dmdelta.silver.table.table import Condition, assert_shape


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
        QualityError: rows fail what stops their table; what is before them has been applied.
    """
    source, begin, end = request.context.source_id, request.begin, request.end
    work = open_context(spark, request)
    events = request.events or table_events(spark, request.context.lakehouse, source, request.name, begin, end)
    log = work.log(events.structure)
    known = request.known or _look_up(work, events)
    pieces = plan_schema_ranges(log, known, begin, end)
    unseen = request.known is None and not request.context.rules.leave_statements_out
    for piece in pieces:
        inside = known_inside(piece, pieces, events)
        if inside is None:
            inside = table_events(spark, request.context.lakehouse, source, request.name, piece.begin, piece.end)
        has_rows = bool(inside.row_count or inside.read)
        if has_rows:
            told = piece.begin if known is not None else _first_told(events, piece.begin)
            begin_table(work, known_schema(piece, request.name), told)
        # A shard without rows need not fit yet: the others may have passed the statement that it stands ahead of.
        meets = has_rows or not request.target.merged
        if unseen and meets and piece.schema is not None and work.condition is Condition.PRESENT:
            waits = _meet(work, piece.schema, piece.begin)
            if waits is not None:
                return work.result(piece.schema, waits)
            unseen = False
        _apply_rows(work, piece, inside, last=piece.then is None and request.whole)
        if piece.then is not None:
            forget_emptied(work, piece)
        waits = follow_statement(work, piece) if piece.then is not None else None
        if waits is not None:
            return work.result(piece.schema, waits)
    structure = pieces[-1].schema if work.condition is Condition.PRESENT else None
    return work.result(structure)


def _meet(work: ApplyContext, schema: TableSchema, at: Position) -> Waiting | None:
    """See that silver fits a structure; of a merged table, have it made to, or say what the shard waits with."""
    if work.request.target.merged:
        return join_shard(work, schema, at)
    if not work.empty:
        assert_shape(work.spark, work.request.target, schema)
    return None


def _look_up(work: ApplyContext, events: TableEvents) -> TableSchema | None:
    request = work.request
    # A segment tells a structure before its first row; statements before that only matter to a table that is there.
    there = work.condition is Condition.PRESENT
    matter = events.structure if there else [event for event in events.structure if event.op is Op.SCHEMA]
    if not events.groups and matter and matter[0].op is Op.SCHEMA:
        return None
    return structure_at(work.spark, request.context, request.name, request.begin)


def _first_told(events: TableEvents, begin: Position) -> Position:
    """Where a table begins whose structure the range tells: with no rows, its silver table stands nowhere else."""
    return max(begin, next((event.position for event in events.structure if event.op is Op.SCHEMA), begin))


def _apply_rows(work: ApplyContext, piece: SchemaRange, events: TableEvents, *, last: bool) -> None:
    if not events.row_count:
        return
    schema = known_schema(piece, work.request.name)
    events, counted = plan_counting(work.request, schema, events)
    if not events.row_count:
        return
    batch = Batch(
        work.spark,
        work.request.context.lakehouse.bronze,
        work.request.context.source_id,
        work.request.target.place,
        work.silver_schema(schema),
        piece.begin,
        piece.end,
        events,
        work.request.mode,
        work.empty,
        counted=counted,
        undropped=_undropped(work, schema),
        repeats=may_repeat(work.request),
    )
    work.clashes += look_for_clashes(work, batch)
    target = work.request.target
    guarded = check_batch(batch, target, work.request.context.checks(target, batch.schema))
    work.failures.update(guarded.failures)
    batch = guarded.batch
    facts, keys = facts_of(batch)
    commits = commits_of(batch, facts)
    for number, (part, step) in enumerate(commits, 1):
        final = number == len(commits)
        tag = work.tag(piece.begin, piece.end if final else piece.begin, last=final and last)
        reach(CrashPoint.SILVER_BEFORE_COMMIT)
        commit = run_step(part, step, tag, keys)
        work.commit = commit or work.commit
        if commit is not None:
            reach(CrashPoint.SILVER_AFTER_COMMIT if final and last else CrashPoint.SILVER_BETWEEN_COMMITS)
    work.steps += [step for _, step in commits]
    work.empty = False
    for op, rows in events.rows.items():
        work.rows[op] = work.rows.get(op, 0) + rows


def _undropped(work: ApplyContext, schema: TableSchema) -> tuple[str, ...]:
    """Silver's columns that a statement has dropped which the rules, or somebody, left out."""
    request, seen = work.request, work.silver_schema(schema)
    rules = request.context.rules
    if work.empty or request.target.merged or not seen.primary_key or not (rules.events.rules or rules.operators):
        return ()
    with wrapped(request.target.place, "looking at"):
        there = work.spark.table(request.target.place).columns
    return tuple(name for name in there if name not in silver_columns(seen))
