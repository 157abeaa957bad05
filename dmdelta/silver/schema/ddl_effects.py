"""The effects of one statement, or of a structure in the log, on a table and its structure: pure decisions."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from dmdelta.changelog.statement_filters import filter_action, kept_by_filters
from dmdelta.ddl.parse.statements import statement_targets
from dmdelta.ddl.tracking.effects import (
    Altered,
    Created,
    Dropped,
    Effect,
    Moved,
    Origin,
    Renamed,
    Unread,
    content_after,
)
from dmdelta.ddl.tracking.log_override import LoggedStructure, settled
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
"""The structure of another table at a position; None if unknown."""


ShadowChange = Callable[[TableName, TableSchema, Position], Altered | Unread | Moved | None]
"""The change that statements on a shadow table before a position make to the real table; None if unknown."""


@dataclass(frozen=True, slots=True)
class DdlOutcome:
    """The effects of one statement, or of one structure in the log.

    Attributes:
        effects: its effects on the table, in order.
        schema: the structure after it; None if unknown or the table is dropped.
        surprise: the log contains a structure that differs from the result of the statements.
        refused: why silver must not apply it; '' if it may.
    """

    event: StructureEvent
    effects: tuple[Effect, ...]
    schema: TableSchema | None
    surprise: bool = False
    refused: str = ""


@dataclass(frozen=True, slots=True)
class TableLog:
    """The part of a log that determines a table's structure.

    Attributes:
        name: schema and table of the source table.
        structure: the statements and structures of the range, in order.
        other: looks up another table's structure.
        ddl_applied_to: silver has applied the statements up to this position; None: none.
        shadow: looks up the change of an online DDL; the first argument is its shadow table.
    """

    name: TableName
    flavor: Flavor
    structure: Sequence[StructureEvent]
    other: OtherStructure = lambda _name, _position: None
    ddl_applied_to: Position | None = None
    rules: SourceRules = NO_RULES
    shadow: ShadowChange = lambda _name, _real, _position: None


def follow(
    log: TableLog, schema: TableSchema | None, event: StructureEvent, recorded: LoggedStructure | None
) -> DdlOutcome:
    """The effects of an event, and the structure after it.

    Args:
        recorded: the next structure in the log after the event; None if there is none.
    """
    if event.op is Op.SCHEMA:
        return _recorded(schema, event)
    operator = log.rules.operators.get(event.position)
    if operator is not None:
        return _overridden(log, schema, event, operator)
    kept = kept_by_filters(log.rules, log.name, event.text, schema)
    if kept is not None:
        followed = follow(log, schema, replace(event, text=kept), recorded)
        return replace(followed, event=event, schema=follow(_unfiltered(log), schema, event, recorded).schema)
    source_effects = _effects_on(log, schema, event)
    action = filter_action(log.rules, log.name, event.text, schema)
    effects: list[Effect] = []
    for effect in source_effects:
        if isinstance(effect, Altered):
            completed = settled(replace(effect, before=schema or effect.before), recorded)
            effect = completed  # noqa: PLW2901 - the same effect
            schema = effect.after
        elif isinstance(effect, Created):
            schema = _settled_creation(effect, recorded) or (recorded.schema if recorded else None)
            effect = Created(effect.table, schema)  # noqa: PLW2901 - the same effect
        elif isinstance(effect, Dropped):
            schema = None
        elif isinstance(effect, Renamed):
            schema = _renamed(log, effect, event)
        effects.append(effect)
    refused = "a filter of the spec has the action Error" if action is Action.ERROR and effects else unread(effects)
    if action is Action.IGNORE:
        return DdlOutcome(event, (), schema, refused=refused)
    return DdlOutcome(event, tuple(effects), schema, refused=refused or moved(effects))


def _overridden(log: TableLog, schema: TableSchema | None, event: StructureEvent, operator: Operator) -> DdlOutcome:
    """Silver applies the operator's statements; the structure is the result of the source's statement."""
    plain = replace(log, rules=replace(log.rules, operators={}))
    seen, effects = schema, list[Effect]()
    for statement in operator.followed(event.text):
        followed = follow(plain, seen, replace(event, text=statement), None)
        seen, effects = followed.schema, [*effects, *followed.effects]
    after = follow(_unfiltered(log), schema, event, None).schema
    return DdlOutcome(event, tuple(effects), after, refused=unread(effects) or moved(effects))


def _unfiltered(log: TableLog) -> TableLog:
    return replace(log, rules=replace(log.rules, operators={}, events=EventFilter()))


def next_recorded(structure: Sequence[StructureEvent]) -> LoggedStructure | None:
    """The first structure among the events."""
    found = next((index for index, event in enumerate(structure) if event.op is Op.SCHEMA), None)
    return LoggedStructure(TableSchema.from_json(structure[found].text), found > 0) if found is not None else None


def _recorded(schema: TableSchema | None, event: StructureEvent) -> DdlOutcome:
    recorded = TableSchema.from_json(event.text)
    if schema is None or same_shape(schema, recorded):
        return DdlOutcome(event, (), recorded)
    # The log takes precedence: the row images after a table map have its structure.
    before = {column.name.lower(): column.name for column in schema.columns}
    origins = tuple(Origin(before.get(column.name.lower())) for column in recorded.columns)
    return DdlOutcome(event, (Altered(schema, recorded, origins),), recorded, surprise=True)


def _effects_on(log: TableLog, schema: TableSchema | None, event: StructureEvent) -> list[Effect]:
    """The effects of a statement on this table; DROP DATABASE drops it."""
    name = log.name
    targets = statement_targets(event.text, name[0])
    if any(target.op == "drop_database" and target.schema == name[0] for target in targets):
        return [Dropped(name)]

    def structure_of(table: TableName) -> TableSchema | None:
        return schema if table == name else log.other(table, event.position)

    effects = statement_effects(event.text, name[0], structure_of, mariadb=log.flavor == "mariadb")
    ours = [effect for effect in effects if name in (effect.table, effect.to if isinstance(effect, Renamed) else None)]
    return [seen for effect in ours for seen in _seen_online(log, schema, effect, event.position)]


def _seen_online(log: TableLog, schema: TableSchema | None, effect: Effect, at: Position) -> list[Effect]:
    """Replace the cut-over of an online DDL by its change of the real table. The shadow table has the same rows."""
    if not isinstance(effect, Renamed):
        return [effect]
    online = log.rules.online
    if effect.table == log.name and online.role(*effect.to) is Role.TRASH:
        return []
    standing = online.standing(*effect.table)
    if standing.role is Role.SHADOW and effect.to == log.name != standing.real:
        return [Unread(log.name, online.misfit([(effect.table, effect.to)]))]
    if standing.role is not Role.SHADOW or standing.real != log.name:
        return [effect]
    if schema is None:
        return []
    change = log.shadow(effect.table, schema, at)
    return [change or Unread(log.name, f"bronze does not contain the statements on {'.'.join(effect.table)}")]


def _settled_creation(effect: Created, recorded: LoggedStructure | None) -> TableSchema | None:
    """The structure of a CREATE TABLE, with the types in the log if they are of the same table."""
    schema = effect.schema
    if schema is None or recorded is None:
        return schema
    completed = settled(Altered(schema, schema, tuple(Origin(None) for _ in schema.columns)), recorded)
    return completed.after


def _renamed(log: TableLog, effect: Renamed, event: StructureEvent) -> TableSchema | None:
    if effect.to != log.name:
        return None
    mariadb = log.flavor == "mariadb"
    renames = statement_effects(event.text, log.name[0], lambda _: None, mariadb=mariadb)
    source = content_after(renames[: renames.index(effect) + 1])[effect.to]
    was = log.other(source, event.position)
    # The statement may also alter the table.
    same_statement = statement_effects(
        event.text, log.name[0], lambda name: was if name == source else None, mariadb=mariadb
    )
    was = next((effect.after for effect in same_statement if isinstance(effect, Altered)), was)
    return replace(was, schema=log.name[0], table=log.name[1]) if was else None


def unread(effects: Iterable[Effect]) -> str:
    """Why a statement cannot be parsed; '' if it can."""
    return next((effect.reason for effect in effects if isinstance(effect, Unread)), "")


def moved(effects: Iterable[Effect]) -> str:
    """Why a table has unknown rows after a statement, even one that had none before; '' if it has not."""
    return next((effect.reason for effect in effects if isinstance(effect, Moved)), "")
