"""The change that an online DDL makes to a real table, from the statements on its shadow table: a pure decision."""

from dataclasses import dataclass, field, replace

from dmdelta.ddl.tracking.effects import Altered, Created, Dropped, Effect, Moved, Origin, Renamed, Unread
from dmdelta.ddl.tracking.statement_effects import adds_unique_index
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.silver.schema.ddl_effects import DdlOutcome, TableLog, follow
from dmdelta.silver.schema.range_profile import StructureEvent


@dataclass(frozen=True, slots=True)
class _Draft:
    """What the statements since the creation of the shadow table make of the real table.

    Attributes:
        origins: of the shadow table's columns in the real table.
        stop: the first effect that silver cannot follow.
        doubt: the first reason why rows or values are unknown.
        unique: a statement adds a unique index.
    """

    origins: dict[str, Origin] = field(default_factory=dict)
    stop: Unread | Moved | None = None
    doubt: str = ""
    unique: bool = False


def plan_shadow_change(shadow: TableLog, real: TableSchema) -> Altered | Unread | Moved | None:
    """The change that the statements on a shadow table, from its CREATE on, make to the real table's structure.

    What a statement on the real table itself leaves unknown, one on the shadow table leaves unknown, too.

    Returns:
        None if the statements are incomplete.
    """
    schema: TableSchema | None = None
    draft = _Draft()
    for event in shadow.structure:
        followed = follow(shadow, schema, event, None)
        for effect in followed.effects:
            draft = _after_effect(draft, effect, followed, real)
        draft = replace(draft, unique=draft.unique or adds_unique_index(event.text, shadow.name))
        schema = followed.schema
    if draft.stop is not None:
        return draft.stop
    if schema is None or draft.origins.keys() != {column.name for column in schema.columns}:
        return None
    after = replace(schema, schema=real.schema, table=real.table)
    origins = tuple(draft.origins[column.name] for column in after.columns)
    return Altered(real, after, origins, draft.doubt, unique_in_copy=draft.unique)


def _after_effect(draft: _Draft, effect: Effect, followed: DdlOutcome, real: TableSchema) -> _Draft:
    if isinstance(effect, (Created, Dropped, Renamed)):
        created = followed.schema if isinstance(effect, Created) else None
        names = {column.name.lower(): column.name for column in real.columns}
        columns = created.columns if created is not None else ()
        return _Draft({column.name: Origin(names.get(column.name.lower())) for column in columns})
    if isinstance(effect, (Unread, Moved)):
        told = replace(effect, table=real.name, reason=_placed(effect.reason, effect.table, followed.event))
        return replace(draft, stop=draft.stop or told)
    if not isinstance(effect, Altered):
        return draft
    pairs = zip(effect.after.columns, effect.origins, strict=True)
    origins = {
        column.name: origin if origin.was is None else draft.origins[origin.was]
        for column, origin in pairs
        if origin.was is None or origin.was in draft.origins
    }
    doubt = effect.doubt and _placed(effect.doubt, effect.table, followed.event)
    return replace(draft, origins=origins, doubt=draft.doubt or doubt)


def _placed(reason: str, shadow: TableName, event: StructureEvent) -> str:
    """The reason with the statement's place: the error of a cut-over has the text of the RENAME."""
    return f"{reason} (in the statement on {'.'.join(shadow)} at {event.position})"
