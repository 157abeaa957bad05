"""The changes that a shard's statement still requires on the merged table's columns: a pure decision.

They derive from the difference to the existing columns, not from the statement's text. So two shards that reach the
same structure by different statements agree, and a statement whose effect another shard's has already achieved requires
nothing: a restart need not know which shard was first.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from dmdelta.ddl.tracking.effects import Altered, Origin
from dmdelta.ddl.types.added_values import Fill
from dmdelta.ddl.types.outcome import widens
from dmdelta.ddl.types.silver_types import silver_type
from dmdelta.model.schema import Column, TableSchema

_NO_TEXT = ("BINARY", "VARIANT", "STRUCT", "ARRAY")


class Verb(str, Enum):
    """The change to a column of the merged table."""

    ADD = "add"
    DROP = "drop"
    RENAME = "rename"
    RETYPE = "retype"


@dataclass(frozen=True, slots=True)
class Operation:
    """One change of a merged table's columns. Names are in lower case, types are silver's.

    Attributes:
        was: the name before a RENAME.
        type: of an ADD or RETYPE.
    """

    verb: Verb
    column: str
    was: str = ""
    type: str = ""

    def is_done(self, schema: TableSchema) -> bool:
        """Whether a shard with this structure no longer needs the change."""
        own = {column.name.lower(): held_type(column) for column in schema.columns}
        if self.verb is Verb.ADD:
            return own.get(self.column) == self.type
        if self.verb is Verb.DROP:
            return self.column not in own
        if self.verb is Verb.RENAME:
            return self.column in own and self.was not in own
        return own.get(self.column, self.type) == self.type


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a merged table, without silver's own.

    Attributes:
        types: silver's types by column name, in order.
        left_out: in lower case, columns of shards that the merged table omits because of an operator override.
    """

    types: Mapping[str, str]
    left_out: frozenset[str] = frozenset()

    def name(self, column: str) -> str | None:
        """The existing name of a column."""
        return name_among(self.types, column)

    def type(self, column: str) -> str | None:
        name = self.name(column)
        return plain_type(self.types[name]) if name is not None else None


def merged_columns(types: Mapping[str, str], left_out: Collection[str], own: Collection[str]) -> Columns:
    """The columns of a merged table, given all of its columns and the names of silver's own (`own`)."""
    kept = {name: plain_type(kind) for name, kind in types.items() if name not in own}
    return Columns(kept, frozenset(name.lower() for name in left_out))


def name_among(names: Iterable[str], column: str) -> str | None:
    """The name that refers to the column, compared case-insensitively."""
    return next((name for name in names if name.lower() == column.lower()), None)


def plain_type(kind: str) -> str:
    """A silver type in canonical notation."""
    return kind.upper().replace(" ", "")


def held_type(column: Column) -> str:
    """Silver's type for a shard's column, in canonical notation."""
    return plain_type(silver_type(column))


def operations(altered: Altered, existing: Columns) -> frozenset[Operation]:
    """The changes that a change of a shard's structure requires on the merged table."""
    kept = {origin.was.lower() for origin in altered.origins if origin.was is not None}
    gone = [column.name.lower() for column in altered.before.columns if column.name.lower() not in kept]
    required = {Operation(Verb.DROP, name) for name in gone if existing.name(name) is not None}
    before = {column.name: column for column in altered.before.columns}
    for origin, column in zip(altered.origins, altered.after.columns, strict=True):
        if column.name.lower() in existing.left_out:
            continue
        required |= _of_column(before[origin.was] if origin.was is not None else None, column, existing)
    return frozenset(required)


def _of_column(old: Column | None, new: Column, existing: Columns) -> set[Operation]:
    name, kind = new.name.lower(), held_type(new)
    present = existing.type(name)
    if old is not None and present is None and (was := existing.type(old.name)) is not None:
        renamed = {Operation(Verb.RENAME, name, was=old.name.lower())}
        return renamed if was == kind else renamed | {Operation(Verb.RETYPE, name, type=kind)}
    if present is None:
        return {Operation(Verb.ADD, name, type=kind)}
    if old is not None and held_type(old) == kind:
        return set()  # its type did not change, whatever the merged table's is
    return {Operation(Verb.RETYPE, name, type=kind)} if present != kind else set()


def holds(present: str, kind: str) -> bool:
    """Whether a silver column of type `present` can hold every value of type `kind`, as the value or as its text."""
    return present == kind or widens(kind, present) or (present == "STRING" and not kind.startswith(_NO_TEXT))


def _is_held(column: Column, existing: Columns) -> bool:
    present = existing.type(column.name)
    return present is not None and holds(present, held_type(column))


def joining(schema: TableSchema, existing: Columns) -> Altered:
    """A shard that joins the merged table, as a change: columns that the merged table lacks are new."""
    known = tuple(column for column in schema.columns if _is_held(column, existing))
    names = {column.name for column in known}
    origins = tuple(Origin(column.name if column.name in names else None, Fill()) for column in schema.columns)
    # A key that is already in the merged table is no change, and so no reason to cluster it again.
    key = schema.primary_key if names.issuperset(schema.primary_key) else ()
    before = TableSchema(schema.schema, schema.table, known, key)
    return Altered(before, schema, origins)
