"""What one statement, or structure that the log tells, does to a table, and to its structure: pure decisions."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from dmdelta.ddl.parse.event_types import ddl_events
from dmdelta.ddl.parse.splitting import split_alter
from dmdelta.ddl.parse.statements import statement_targets
from dmdelta.ddl.tracking.effects import Altered, Created, Dropped, Effect, Origin, Renamed, Unread, content_after
from dmdelta.ddl.tracking.log_override import settled
from dmdelta.ddl.tracking.statement_effects import statement_effects
from dmdelta.ddl.types.silver_types import same_shape
from dmdelta.model.change import Op
from dmdelta.model.gtid import Flavor
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.rules import NO_RULES, Action, EventFilter, Role, SourceRules
from dmdelta.rules.operators import Operator
from dmdelta.silver.schema.range_profile import StructureEvent

OtherStructure = Callable[[TableName, Position], TableSchema | None]
"""The structure of another table at a position, None if nobody told it."""


ShadowChange = Callable[[TableName, TableSchema, Position], Altered | None]
"""What the statements on a shadow table before a position make of the real table's structure; None if nobody knows."""


@dataclass(frozen=True, slots=True)
class DdlOutcome:
    """One statement, or structure that the log tells.

    Attributes:
        effects: what it does to the table, in order.
        schema: the structure behind it, None where it is not known or the table is gone.
        surprise: the log told a structure that no statement leads to.
        refused: why it must not be followed, '' if it may be.
    """

    event: StructureEvent
    effects: tuple[Effect, ...]
    schema: TableSchema | None
    surprise: bool = False
    refused: str = ""


@dataclass(frozen=True, slots=True)
class TableLog:
    """What is needed to follow a table's structure.

    Attributes:
        name: schema and table of the source table.
        structure: what the range says about it, in order.
        shadow: what the work of an online DDL on its shadow table, named first, makes of the real table.
        ddl_applied_to: statements up to there have been followed by silver; None: none of them.
    """

    name: TableName
    flavor: Flavor
    structure: Sequence[StructureEvent]
    other: OtherStructure = lambda _name, _position: None
    ddl_applied_to: Position | None = None
    rules: SourceRules = NO_RULES
    shadow: ShadowChange = lambda _name, _real, _position: None


def follow(log: TableLog, schema: TableSchema | None, event: StructureEvent, told: TableSchema | None) -> DdlOutcome:
    """The structure behind an event.

    Args:
        told: the next structure that the log tells behind it, None if it tells none.
    """
    if event.op is Op.SCHEMA:
        return _told(schema, event)
    operator = log.rules.operators.get(event.position)
    if operator is not None:
        return _operated(log, schema, event, operator)
    kept = _kept_by_filters(log, schema, event)
    if kept is not None:
        followed = follow(log, schema, replace(event, text=kept), told)
        return replace(followed, event=event, schema=follow(_unfiltered(log), schema, event, told).schema)
    found = _effects_on(log, schema, event)
    action = _action(log, schema, event)
    effects: list[Effect] = []
    for effect in found:
        if isinstance(effect, Altered):
            effect = settled(replace(effect, before=schema or effect.before), told)  # noqa: PLW2901 - the same effect
            schema = effect.after
        elif isinstance(effect, Created):
            schema = _settled_creation(effect, told) or told
            effect = Created(effect.table, schema)  # noqa: PLW2901 - the same effect
        elif isinstance(effect, Dropped):
            schema = None
        elif isinstance(effect, Renamed):
            schema = _renamed(log, effect, event)
        effects.append(effect)
    refused = "a filter of the spec says Error" if action is Action.ERROR and effects else unread(effects)
    return DdlOutcome(event, () if action is Action.IGNORE else tuple(effects), schema, refused=refused)


def _operated(log: TableLog, schema: TableSchema | None, event: StructureEvent, operator: Operator) -> DdlOutcome:
    """The structure is what the source's statement made of it, whatever silver follows."""
    plain = replace(log, rules=replace(log.rules, operators={}))
    seen, effects = schema, list[Effect]()
    for statement in operator.followed(event.text):
        followed = follow(plain, seen, replace(event, text=statement), None)
        seen, effects = followed.schema, [*effects, *followed.effects]
    after = follow(_unfiltered(log), schema, event, None).schema
    return DdlOutcome(event, tuple(effects), after, refused=unread(effects))


def _kept_by_filters(log: TableLog, schema: TableSchema | None, event: StructureEvent) -> str | None:
    """What filters leave of an ALTER TABLE if they leave some of its actions out, and only some; else None."""
    statement = split_alter(event.text) if log.rules.events.rules else None
    if statement is None:
        return None
    alone = {action: replace(event, text=statement.of([action])) for action in statement.actions}
    kept = [action for action, single in alone.items() if _action(log, schema, single) is not Action.IGNORE]
    return statement.of(kept) if kept and len(kept) < len(alone) else None


def _unfiltered(log: TableLog) -> TableLog:
    return replace(log, rules=replace(log.rules, operators={}, events=EventFilter()))


def next_told(structure: Iterable[StructureEvent]) -> TableSchema | None:
    """The first structure that is told."""
    texts = (event.text for event in structure if event.op is Op.SCHEMA)
    return next((TableSchema.from_json(text) for text in texts), None)


def _told(schema: TableSchema | None, event: StructureEvent) -> DdlOutcome:
    told = TableSchema.from_json(event.text)
    if schema is None or same_shape(schema, told):
        return DdlOutcome(event, (), told)
    # The log knows best: a table map is what the rows behind it are made of.
    before = {column.name.lower(): column.name for column in schema.columns}
    origins = tuple(Origin(before.get(column.name.lower())) for column in told.columns)
    return DdlOutcome(event, (Altered(schema, told, origins),), told, surprise=True)


def _effects_on(log: TableLog, schema: TableSchema | None, event: StructureEvent) -> list[Effect]:
    """What a statement does to this table; a database that goes takes its tables along."""
    name = log.name
    targets = statement_targets(event.text, name[0])
    if any(target.op == "drop_database" and target.schema == name[0] for target in targets):
        return [Dropped(name)]

    def structure_of(table: TableName) -> TableSchema | None:
        return schema if table == name else log.other(table, event.position)

    effects = statement_effects(event.text, name[0], structure_of, mariadb=log.flavor == "mariadb")
    ours = [effect for effect in effects if name in (effect.table, effect.to if isinstance(effect, Renamed) else None)]
    return [seen for effect in ours for seen in _seen_online(log, schema, effect, event.position)]


def _action(log: TableLog, schema: TableSchema | None, event: StructureEvent) -> Action:
    return log.rules.decide(log.name, ddl_events(event.text, schema), event.text)


def _seen_online(log: TableLog, schema: TableSchema | None, effect: Effect, at: Position) -> list[Effect]:
    """The cut-over of an online DDL changes the real table, whose rows stay: the shadow's are the same."""
    if not isinstance(effect, Renamed):
        return [effect]
    online = log.rules.online
    if effect.table == log.name and online.role(*effect.to) is Role.TRASH:
        return []
    standing = online.standing(*effect.table)
    if standing.role is not Role.SHADOW or standing.real != log.name:
        return [effect]
    if schema is None:
        return []
    change = log.shadow(effect.table, schema, at)
    return [change or Unread(log.name, f"what was done to {'.'.join(effect.table)} is not in bronze")]


def _settled_creation(effect: Created, told: TableSchema | None) -> TableSchema | None:
    """The structure that CREATE tells, with the types that the log tells if it is the same table."""
    schema = effect.schema
    if schema is None or told is None:
        return schema
    found = settled(Altered(schema, schema, tuple(Origin(None) for _ in schema.columns)), told)
    return found.after


def _renamed(log: TableLog, effect: Renamed, event: StructureEvent) -> TableSchema | None:
    if effect.to != log.name:
        return None
    mariadb = log.flavor == "mariadb"
    renames = statement_effects(event.text, log.name[0], lambda _: None, mariadb=mariadb)
    source = content_after(renames[: renames.index(effect) + 1])[effect.to]
    was = log.other(source, event.position)
    # The same statement may change the structure, too.
    found = statement_effects(event.text, log.name[0], lambda name: was if name == source else None, mariadb=mariadb)
    was = next((effect.after for effect in found if isinstance(effect, Altered)), was)
    return replace(was, schema=log.name[0], table=log.name[1]) if was else None


def unread(effects: Iterable[Effect]) -> str:
    """Why a statement cannot be understood, '' if it can."""
    return next((effect.reason for effect in effects if isinstance(effect, Unread)), "")
