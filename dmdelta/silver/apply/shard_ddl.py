"""Shard DDL: apply a shard's statement to the merged table, skip it, or wait for other shards."""

from dmdelta.ddl.tracking.effects import Altered, Created, Effect, Renamed, empties
from dmdelta.errors import SchemaError, UnsupportedSchemaChange
from dmdelta.lakehouse.changes import Change, Verb
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema
from dmdelta.sharding import Action, Columns, Waiting, joining, operations
from dmdelta.silver.apply.context import ApplyContext
from dmdelta.silver.apply.gate import assert_keys_kept, clear_emptied
from dmdelta.silver.apply.shard_columns import ShardChange, own_older
from dmdelta.silver.apply.shard_merge import plan_leaving_out, plan_shard_change
from dmdelta.silver.schema.lookup import is_overridden
from dmdelta.silver.schema.schema_ranges import SchemaRange, refusal

log = get_logger(__name__)


def join_if_new(work: ApplyContext, schema: TableSchema, at: Position) -> Waiting | None:
    """As `join_shard`, unless the shard has joined before and statements on it may have been ignored since.

    It lacks only columns of such statements then, which joining would add.
    """
    if not lacks_ignored(work, at):
        return join_shard(work, schema, at)
    target = work.request.target
    work.request.context.shards.set_schema(target.route.name, target.shard, schema)
    return None


def lacks_ignored(work: ApplyContext, at: Position) -> bool:
    """Whether the merged table can lack columns of a shard because it has joined, and ignored statements since.

    Raises:
        LakehouseError: bronze or the merged table cannot be read.
    """
    request = work.request
    rules, name = request.context.rules, request.name
    if not rules.leaves_columns_out(name) or not _has_joined(work):
        return False
    return rules.ignores_columns(name) or is_overridden(work.spark, request.context, name, at)


def _has_joined(work: ApplyContext) -> bool:
    """Whether the shard has a commit of its own, except those of a join that a crash interrupted."""
    tag = work.began_with
    if tag is None:
        return False
    may_be_joining = tag.begin == tag.end and tag.rest is None and not tag.again
    return not may_be_joining or _has_rows(work)


def join_shard(work: ApplyContext, schema: TableSchema, at: Position) -> Waiting | None:
    """Add a shard with its structure at `at` to the merged table.

    Returns:
        The statement that the shard waits with, or None if the merged table can hold its rows.

    Raises:
        UnsupportedSchemaChange: the merged table cannot hold the shard's rows.
        Fenced, CommitConflict, LakehouseError: as `dmdelta.lakehouse.commits`.
    """
    existing = work.columns()
    return _decide(work, Waiting(at, "", joining(schema, existing)), existing, ())


def follow_in_shard(work: ApplyContext, piece: SchemaRange) -> Waiting | None:
    """Apply the statement on a shard at the end of a schema range to the merged table.

    Returns:
        The statement that the shard waits with, or None.

    Raises:
        UnsupportedSchemaChange: the merged table cannot apply the statement; the shard's rows are unchanged.
        Fenced, CommitConflict, LakehouseError: as `dmdelta.lakehouse.commits`.
    """
    assert piece.then is not None
    event, name = piece.then.event, work.request.name
    if piece.then.refused:
        raise refusal(name, event, piece.then.refused)
    if any(isinstance(effect, Renamed) for effect in piece.then.effects):
        raise refusal(name, event, "a renamed shard cannot be distinguished from a new shard")
    emptied = empties(piece.then.effects)
    target = work.request.target
    first = (Change(Verb.DELETE, own_older(target, piece.end)),) if emptied else ()
    existing = work.columns()
    altered = _altered(piece.then.effects, existing)
    if len(altered) > 1:
        raise refusal(name, event, "an operator override contains more than one ALTER of a shard")
    if altered:
        try:
            return _decide(work, Waiting(piece.end, event.text, altered[0]), existing, first)
        except UnsupportedSchemaChange:
            raise
        except SchemaError as error:
            raise refusal(name, event, error.message) from error
    if first:
        clear_emptied(work, piece.end)
    work.make(first, piece.begin, piece.end)
    work.ddl_applied_to = piece.end
    if piece.then.schema is None:
        work.request.context.shards.remove_shard(target.route.name, work.request.target.shard)
    else:
        work.request.context.shards.set_schema(target.route.name, work.request.target.shard, piece.then.schema)
    return None


def _altered(effects: tuple[Effect, ...], existing: Columns) -> list[Altered]:
    """The changes of a shard's structure; a created table joins with its initial structure."""
    altered = [effect for effect in effects if isinstance(effect, Altered)]
    created = [effect.schema for effect in effects if isinstance(effect, Created) and effect.schema is not None]
    return [*altered, *(joining(schema, existing) for schema in created)]


def _decide(work: ApplyContext, waiting: Waiting, existing: Columns, first: tuple[Change, ...]) -> Waiting | None:
    """Let the shard coordination decide about a shard's statement, and carry out the decision.

    Args:
        first: the changes to commit before those of the statement.
    """
    shards, target = work.request.context.shards, work.request.target
    after = waiting.altered.after
    if shards.mode is None and operations(waiting.altered, existing):
        raise SchemaError(
            f"{target.shard} changes the columns of {target.place}, which is merged from several source tables",
            hint="set the shard mode in the spec: shard-mode: pessimistic, or optimistic",
        )
    decision = shards.ask(target.route.name, work.request.target.shard, waiting, existing)
    if decision.action is Action.WAIT:
        log.info("shard waits", shard=str(target.shard), at=str(waiting.position), ddl=waiting.text)
        return waiting
    change = ShardChange(
        target, waiting.altered, existing, decision.others, waiting.position, work.request.context.flavor == "mariadb"
    )
    plan = (plan_leaving_out if decision.action is Action.SKIP else plan_shard_change)(change)
    if plan.unknown and not first and _has_rows(work):
        raise SchemaError(plan.unknown)
    is_statement = bool(waiting.text)
    if first:
        clear_emptied(work, waiting.position)
    else:
        assert_keys_kept(work, [waiting.altered])
    work.make((*first, *plan.changes), waiting.position, waiting.position, statement=is_statement)
    if is_statement:
        work.ddl_applied_to = waiting.position
    shards.set_columns(target.route.name, work.columns())
    shards.set_schema(target.route.name, work.request.target.shard, after)
    return None


def _has_rows(work: ApplyContext) -> bool:
    target = work.request.target
    with wrapped(target.place, "reading"):
        return not work.spark.table(target.place).where(target.own_rows).isEmpty()
