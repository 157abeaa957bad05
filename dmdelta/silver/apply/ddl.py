"""Apply a DDL statement on a source table to its silver table."""

from collections.abc import Sequence

from dmdelta.ddl.tracking.effects import Altered, Created, Dropped, Effect, Moved, Renamed, Truncated, Unread, empties
from dmdelta.errors import SchemaError
from dmdelta.lakehouse.changes import Change
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.sharding import Waiting
from dmdelta.silver.apply.context import ApplyContext, begin_table
from dmdelta.silver.apply.gate import assert_keys_kept, clear_emptied
from dmdelta.silver.apply.shard_ddl import follow_in_shard, join_shard
from dmdelta.silver.rows.strategy import Mode
from dmdelta.silver.schema.evolution import plan_change, plan_creation, plan_drop, plan_truncation
from dmdelta.silver.schema.repeated import Shapes, plan_again, was_followed
from dmdelta.silver.schema.schema_ranges import SchemaRange, refusal
from dmdelta.silver.table.state import may_be_ahead
from dmdelta.silver.table.table import Condition, has_rows, has_shape, shapes

log = get_logger(__name__)


def follow_statement(work: ApplyContext, piece: SchemaRange) -> Waiting | None:
    """Apply the statement at the end of a schema range to the silver table.

    Returns:
        The statement that a shard of a merged table waits with for the other shards, or None.

    Raises:
        UnsupportedSchemaChange: silver cannot apply the statement; the table is unchanged.
        Fenced, CommitConflict, LakehouseError: as `dmdelta.lakehouse.commits`.
    """
    assert piece.then is not None
    event, effects = piece.then.event, piece.then.effects
    _warn(work, piece)
    created = next((effect for effect in effects if isinstance(effect, Created)), None)
    if any(isinstance(effect, Moved) for effect in effects):
        raise refusal(work.request.name, event, piece.then.refused)
    unsupported = any(isinstance(effect, Unread) and effect.unsupported for effect in effects)
    if work.condition is Condition.ABSENT and not unsupported:
        if empties(effects):
            clear_emptied(work, piece.end)
        if created is not None and created.schema is not None:
            begin_table(work, created.schema, piece.end)
        work.ddl_applied_to = piece.end
        joined = created.schema if created is not None and work.request.target.merged else None
        return join_shard(work, joined, piece.end) if joined is not None else None
    if work.request.target.merged:
        return follow_in_shard(work, piece)
    _follow_alone(work, piece)
    return None


def _follow_alone(work: ApplyContext, piece: SchemaRange) -> None:
    """Apply the statement to a table that is not merged.

    Raises:
        UnsupportedSchemaChange, Fenced, CommitConflict, LakehouseError: as `follow_statement`.
    """
    assert piece.then is not None
    event, effects = piece.then.event, piece.then.effects
    if piece.then.refused:
        raise refusal(work.request.name, event, piece.then.refused)
    try:
        changes, condition = plan_following(work, effects, piece.end)
        if not empties(effects):
            assert_keys_kept(work, effects)
    except SchemaError as error:
        raise refusal(work.request.name, event, error.message) from error
    if empties(effects):
        clear_emptied(work, piece.end)
    work.make(changes, piece.begin, piece.end)
    work.ddl_applied_to, work.condition = piece.end, condition


def _warn(work: ApplyContext, piece: SchemaRange) -> None:
    """Log what makes silver differ from the source, or the log from itself, without a stop of the table."""
    assert piece.then is not None
    table, at = ".".join(work.request.name), str(piece.end)
    if piece.then.surprise:
        log.warning("structure in the log differs from the preceding DDL statements", table=table, at=at)
    if any(isinstance(effect, Altered) and effect.unique_in_copy for effect in piece.then.effects):
        log.warning(
            "an online DDL adds a unique index: if rows violated it, only silver still has them; run dmdelta validate",
            table=table,
            at=at,
        )


def plan_following(work: ApplyContext, effects: Sequence[Effect], at: Position) -> tuple[list[Change], Condition]:
    """The commits that apply the effects of one statement, and the table's condition afterwards.

    Raises:
        SchemaError: silver cannot apply an effect.
    """
    changes: list[Change] = []
    condition, target = work.condition, work.request.target
    seen = _columns(work) if work.request.context.rules.leave_statements_out else None
    for effect in effects:
        if isinstance(effect, Renamed):  # apply_group handles the renames of the log
            raise SchemaError("an operator override cannot contain a RENAME, nor replace a statement that renames")
        if isinstance(effect, Truncated):
            changes += plan_truncation(at)
        elif isinstance(effect, Dropped):
            changes += plan_drop(at)
            condition = Condition.DROPPED
        elif isinstance(effect, Created) and effect.schema is not None:
            fits = has_shape(work.spark, target, effect.schema)
            changes += plan_creation(target.silver_schema(effect.schema), at, fits=fits)
            condition = Condition.PRESENT
        elif isinstance(effect, Altered) and condition is Condition.PRESENT:
            if seen is not None:
                effect = effect.among(seen)  # noqa: PLW2901 - the same effect on silver's columns
                seen = {column.name for column in effect.after.columns}
            changes += _altered(work, effect, at)
    return changes, condition


def _altered(work: ApplyContext, effect: Altered, at: Position) -> Sequence[Change]:
    target = work.request.target
    seen = target.seen_change(effect)
    plan = plan_change(seen, at, mariadb=work.request.context.flavor == "mariadb")
    if work.request.mode is Mode.SAFE and _was_followed(work, effect, at):
        # It was applied before, or the snapshot is newer than it.
        return plan_again(plan.changes, seen.after)
    if plan.unknown and has_rows(work.spark, target.place):
        raise SchemaError(plan.unknown)
    return plan.changes


def _was_followed(work: ApplyContext, effect: Altered, at: Position) -> bool:
    """
    Raises:
        SchemaError: neither silver's columns nor its history show it.
        LakehouseError: the history cannot be read.
    """
    target = work.request.target
    _, before = shapes(work.spark, target, effect.before)
    present, after = shapes(work.spark, target, effect.after)
    exact = not work.request.context.rules.leave_statements_out
    try:
        return was_followed(effect, Shapes(present, before, after), exact=exact)
    except SchemaError:
        if may_be_ahead(work.spark, target, at, completed=True):
            raise
        return False


def _columns(work: ApplyContext) -> set[str]:
    """The columns of silver, which lacks those of ignored statements."""
    with wrapped(work.request.target.place, "reading the columns of"):
        return set(work.spark.table(work.request.target.place).columns)
