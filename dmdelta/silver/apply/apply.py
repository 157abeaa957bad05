"""Apply a range of bronze to one silver table, in one or more commits. The last commit records the range's end."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from dmdelta.ddl.types.silver_types import silver_columns
from dmdelta.failpoint import CrashPoint, reach
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.sharding import Waiting
from dmdelta.silver.apply.context import ApplyContext, begin_table, open_context
from dmdelta.silver.apply.ddl import follow_statement
from dmdelta.silver.apply.gate import check_batch
from dmdelta.silver.apply.key_conflicts import check_key_clashes
from dmdelta.silver.apply.renames import plan_renamings, rename_tables
from dmdelta.silver.apply.request import ApplyRequest, ApplyResult, RowsPath
from dmdelta.silver.apply.row_filters import may_repeat, plan_counting
from dmdelta.silver.apply.shard_ddl import join_if_new
from dmdelta.silver.rows.batch import Batch
from dmdelta.silver.rows.commits import commits_of, facts_of, run_step
from dmdelta.silver.schema.lookup import structure_at
from dmdelta.silver.schema.range_profile import TableEvents, table_events
from dmdelta.silver.schema.schema_ranges import SchemaRange, known_inside, known_schema, plan_schema_ranges
from dmdelta.silver.table.table import Condition, assert_shape


def apply_group(
    spark: SparkSession, tables: Sequence[TableEvents], requests: Sequence[ApplyRequest]
) -> list[ApplyResult]:
    """Apply a range to a group of tables that are renamed into each other, or to a single table.

    Args:
        tables: the events of the range by table.
        requests: for the same tables. A request that begins at the range's end or later has nothing to apply.

    Raises:
        DmdeltaError: as `apply_table`.
    """
    pending = {request.name: request for request in requests}
    before: dict[TableName, ApplyResult] = {}
    for renaming in plan_renamings(tables, requests[0].context.rules, mariadb=requests[0].context.flavor == "mariadb"):
        at = renaming.at
        for name, request in pending.items():
            if request.begin < at:
                result = apply_table(spark, replace(request, end=at, events=None, whole=False))
                before[name] = _both(before.get(name), result)
                pending[name] = replace(request, begin=at, known=None, applied=None, after=None, newest=None)
        rename_tables(spark, pending, renaming)
        for name, request in pending.items():
            if request.begin == at:
                pending[name] = replace(
                    request, known=None, applied=None, after=None, newest=None, ddl_applied_to=at, events=None
                )
    left = [request for request in pending.values() if request.begin < request.end]
    return [_both(before.get(request.name), apply_table(spark, request)) for request in left]


def _both(before: ApplyResult | None, result: ApplyResult) -> ApplyResult:
    """The result of two parts of a range. The state of the table is that after the second one."""
    if before is None:
        return result
    return replace(
        result,
        rows=Counter(before.rows) + Counter(result.rows),
        steps=(*before.steps, *result.steps),
        clashes=before.clashes + result.clashes,
        failures=Counter(before.failures) + Counter(result.failures),
        path=result.path or before.path,
    )


def apply_table(spark: SparkSession, request: ApplyRequest) -> ApplyResult:
    """Apply a range to a silver table. Creates the table if it does not exist.

    Every commit of a range except the last is idempotent. After a crash, applying the same range from the end of the
    task's newest commit gives the same table.

    Args:
        spark: a session that no other writer uses during the call.

    Raises:
        ForeignTable: the table belongs to another task.
        UnknownSchema: bronze does not contain the table's structure.
        UnsupportedSchemaChange: silver cannot apply a DDL statement in the range. Everything before it is applied.
        Fenced: another run of this task applied the range.
        CommitConflict: another writer committed first; the call can be retried.
        LakehouseError: a table cannot be read or written.
        QualityError: rows fail an expectation that stops the table. Everything before them is applied.
    """
    begin, end = request.begin, request.end
    work = open_context(spark, request)
    events = request.events or table_events(spark, request.context, request.name, begin, end)
    log = work.log(events.structure)
    known = request.known or _look_up(work, events)
    pieces = plan_schema_ranges(log, known, begin, end)
    unseen = request.known is None and (request.target.merged or not request.context.rules.leave_statements_out)
    for piece in pieces:
        inside = known_inside(piece, pieces, events)
        if inside is None:
            inside = table_events(spark, request.context, request.name, piece.begin, piece.end)
        has_rows = bool(inside.row_count or inside.read)
        if has_rows:
            start = piece.begin if known is not None else _first_structure(events, piece.begin)
            begin_table(work, known_schema(piece, request.name), start)
        # A shard without rows need not match yet: other shards may have applied a statement that it has not reached.
        must_match = has_rows or not request.target.merged
        if unseen and must_match and piece.schema is not None and work.condition is Condition.PRESENT:
            waits = _ensure_structure(work, piece.schema, piece.begin)
            if waits is not None:
                return work.result(piece.schema, waits)
            unseen = False
        _apply_rows(work, piece, inside, last=piece.then is None and request.whole)
        waits = follow_statement(work, piece) if piece.then is not None else None
        if waits is not None:
            return work.result(piece.schema, waits)
    structure = pieces[-1].schema if work.condition is Condition.PRESENT else None
    return work.result(structure)


def _ensure_structure(work: ApplyContext, schema: TableSchema, at: Position) -> Waiting | None:
    """Check that silver has a structure. A merged table is altered to it; returns the statement if the shard waits."""
    if work.request.target.merged:
        return join_if_new(work, schema, at)
    if not work.empty:
        assert_shape(work.spark, work.request.target, schema)
    return None


def _look_up(work: ApplyContext, events: TableEvents) -> TableSchema | None:
    request = work.request
    # Bronze records a structure where it differs, and after each statement: rows at the beginning of a range have an
    # earlier one. Earlier statements matter only to an existing table.
    existing = work.condition is Condition.PRESENT
    relevant = events.structure if existing else [event for event in events.structure if event.op is Op.SCHEMA]
    rows_first = not events.structure or events.first < events.structure[0].position
    if not rows_first and not events.groups and relevant and relevant[0].op is Op.SCHEMA:
        return None
    earlier = request.earlier
    known = earlier.events if earlier is not None and earlier.end == request.begin else None
    return structure_at(work.spark, request.context, request.name, request.begin, known)


def _first_structure(events: TableEvents, begin: Position) -> Position:
    """The position at which a new table starts: that of the first structure in the range."""
    return max(begin, next((event.position for event in events.structure if event.op is Op.SCHEMA), begin))


def _apply_rows(work: ApplyContext, piece: SchemaRange, events: TableEvents, *, last: bool) -> None:
    if not events.row_count:
        return
    schema = known_schema(piece, work.request.name)
    events, counted = plan_counting(work.request, schema, events)
    if not events.row_count:
        return
    batch = Batch(
        spark=work.spark,
        bronze=work.request.context.lakehouse.bronze,
        source_id=work.request.context.source_id,
        target=work.request.target.place,
        schema=work.silver_schema(schema),
        begin=piece.begin,
        end=piece.end,
        events=events,
        mode=work.request.mode,
        empty=work.empty,
        counted=counted,
        undropped=_undropped(work, schema),
        repeats=may_repeat(work.request),
        memory=_in_memory(work, piece, events),
    )
    work.clashes += check_key_clashes(work, batch)
    guarded = check_batch(batch, work.request)
    work.failures.update(guarded.failures)
    batch = guarded.batch
    facts, literal = facts_of(batch)
    commits = commits_of(batch, facts)
    for number, (part, step) in enumerate(commits, 1):
        final = number == len(commits)
        tag = work.tag(piece.begin, piece.end if final else piece.begin, last=final and last)
        reach(CrashPoint.SILVER_BEFORE_COMMIT)
        commit = run_step(part, step, tag, literal, work.after)
        work.commit = commit or work.commit
        if commit is not None:
            reach(CrashPoint.SILVER_AFTER_COMMIT if final and last else CrashPoint.SILVER_BETWEEN_COMMITS)
    if batch.memory is not None:
        reach(CrashPoint.SILVER_FROM_MEMORY)
    work.read_from(RowsPath.BRONZE if batch.memory is None else RowsPath.MEMORY)
    work.steps += [step for _, step in commits]
    work.empty = False
    for op, rows in events.rows.items():
        work.rows[op] = work.rows.get(op, 0) + rows


def _in_memory(work: ApplyContext, piece: SchemaRange, events: TableEvents) -> Any:
    """The table's rows of a schema range as Arrow; None if they have to be read from bronze.

    The rows that XA transactions prepared earlier, and those that a snapshot read, are only there.
    """
    if events.groups or Op.READ in events.rows:
        return None
    return work.request.context.memory.rows(piece.begin, piece.end, work.request.name)


def _undropped(work: ApplyContext, schema: TableSchema) -> tuple[str, ...]:
    """Columns of silver that the source has dropped, by a statement that a filter or an operator override skipped."""
    request, seen = work.request, work.silver_schema(schema)
    rules = request.context.rules
    if work.empty or request.target.merged or not seen.primary_key or not (rules.events.rules or rules.operators):
        return ()
    with wrapped(request.target.place, "reading the columns of"):
        existing = work.spark.table(request.target.place).columns
    return tuple(name for name in existing if name not in silver_columns(seen))
