"""A shard's statements on a merged table: asked about, held, or followed."""

from dmdelta.ddl.tracking.effects import Altered, Created, Dropped, Effect, Renamed, Truncated
from dmdelta.errors import SchemaError, UnsupportedSchemaChange
from dmdelta.lakehouse.changes import Change, Verb
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema
from dmdelta.sharding import Action, Columns, Waiting, joining, operations
from dmdelta.silver.apply.context import ApplyContext
from dmdelta.silver.apply.shard_columns import ShardChange, own_older
from dmdelta.silver.apply.shard_merge import plan_leaving_out, plan_shard_change
from dmdelta.silver.schema.schema_ranges import SchemaRange, refusal

log = get_logger(__name__)


def join_shard(work: ApplyContext, schema: TableSchema, at: Position) -> Waiting | None:
    """Have a shard take part with its structure at `at`; what it waits with, None if the merged table holds its rows.

    Raises:
        UnsupportedSchemaChange: the merged table cannot hold the shard's rows.
        Fenced, CommitConflict, LakehouseError: as `dmdelta.lakehouse.commits`.
    """
    there = work.columns()
    if work.request.context.rules.leave_statements_out:
        work.request.context.shards.stands(work.request.target.route.name, work.request.target.shard, schema)
        return None
    return _settle(work, Waiting(at, "", joining(schema, there)), there, ())


def follow_in_shard(work: ApplyContext, piece: SchemaRange) -> Waiting | None:
    """Do to a merged table what the statement at the end of a piece did to a shard; what the shard waits with, or None.

    Raises:
        UnsupportedSchemaChange: the merged table cannot follow; the shard is as it was before the statement.
        Fenced, CommitConflict, LakehouseError: as `dmdelta.lakehouse.commits`.
    """
    assert piece.then is not None
    event, name = piece.then.event, work.request.name
    if piece.then.refused:
        raise refusal(name, event, piece.then.refused)
    if any(isinstance(effect, Renamed) for effect in piece.then.effects):
        raise refusal(name, event, "a shard that gets another name cannot be told from a new one")
    emptied = any(isinstance(effect, Truncated | Dropped | Created) for effect in piece.then.effects)
    target = work.request.target
    ahead = (Change(Verb.DELETE, own_older(target, piece.end)),) if emptied else ()
    there = work.columns()
    altered = _altered(piece.then.effects, there)
    if len(altered) > 1:
        raise refusal(name, event, "more than one change of a shard's columns stands in for one statement")
    if altered:
        try:
            return _settle(work, Waiting(piece.end, event.text, altered[0]), there, ahead)
        except UnsupportedSchemaChange:
            raise
        except SchemaError as error:
            raise refusal(name, event, error.message) from error
    work.make(ahead, piece.begin, piece.end)
    work.ddl_applied_to = piece.end
    if piece.then.schema is None:
        work.request.context.shards.leaves(target.route.name, work.request.target.shard)
    else:
        work.request.context.shards.stands(target.route.name, work.request.target.shard, piece.then.schema)
    return None


def _altered(effects: tuple[Effect, ...], there: Columns) -> list[Altered]:
    """The changes of a shard's structure; a table that begins joins with the one that it begins with."""
    found = [effect for effect in effects if isinstance(effect, Altered)]
    begun = [effect.schema for effect in effects if isinstance(effect, Created) and effect.schema is not None]
    return [*found, *(joining(schema, there) for schema in begun)]


def _settle(work: ApplyContext, waiting: Waiting, there: Columns, ahead: tuple[Change, ...]) -> Waiting | None:
    """Ask what becomes of a shard's statement, and do it."""
    shards, target = work.request.context.shards, work.request.target
    after = waiting.altered.after
    if shards.mode is None and operations(waiting.altered, there):
        raise SchemaError(
            f"{target.shard} would change the columns of {target.place}, to which other tables go, too",
            hint="say in the spec how shards agree on a change: shard-mode: pessimistic, or optimistic",
        )
    verdict = shards.ask(target.route.name, work.request.target.shard, waiting, there)
    if verdict.action is Action.WAIT:
        log.info("shard waits", shard=str(target.shard), at=str(waiting.position), ddl=waiting.text)
        return waiting
    change = ShardChange(
        target, waiting.altered, there, verdict.others, waiting.position, work.request.context.flavor == "mariadb"
    )
    plan = (plan_leaving_out if verdict.action is Action.SKIP else plan_shard_change)(change)
    if plan.unknown and not ahead and _has_rows(work):
        raise SchemaError(plan.unknown)
    is_statement = bool(waiting.text)
    work.make((*ahead, *plan.changes), waiting.position, waiting.position, statement=is_statement)
    if is_statement:
        work.ddl_applied_to = waiting.position
    shards.sees(target.route.name, work.columns())
    shards.stands(target.route.name, work.request.target.shard, after)
    return None


def _has_rows(work: ApplyContext) -> bool:
    target = work.request.target
    with wrapped(target.place, "reading"):
        return not work.spark.table(target.place).where(target.own_rows).isEmpty()
