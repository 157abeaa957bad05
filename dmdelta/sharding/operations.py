"""What a shard's statement still has to do to the columns of the merged table: a pure decision.

It is told by the difference from the columns that are there, not by the statement's text. So two shards that reach the
same structure by statements of other words agree, and a statement that another shard's has done already has nothing
left to do: a restart need not remember who was first.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from dmdelta.ddl.effects import Altered, Origin
from dmdelta.ddl.fills import Fill
from dmdelta.ddl.outcome import widens
from dmdelta.ddl.types import silver_type
from dmdelta.model.schema import Column, TableSchema

_NO_TEXT = ("BINARY", "VARIANT", "STRUCT", "ARRAY")


class Verb(str, Enum):
    """What happens to a column of the merged table."""

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
        """A shard with this structure needs it no more."""
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
    """The columns of a merged table, silver's own left out.

    Attributes:
        types: silver's types by the names as they are there, in order.
        left_out: in lower case, columns of shards that the merged table goes without, because somebody said so.
    """

    types: Mapping[str, str]
    left_out: frozenset[str] = frozenset()

    def name(self, column: str) -> str | None:
        """The name by which a column is there."""
        return name_among(self.types, column)

    def type(self, column: str) -> str | None:
        name = self.name(column)
        return plain_type(self.types[name]) if name is not None else None


def merged_columns(types: Mapping[str, str], left_out: Collection[str], own: Collection[str]) -> Columns:
    """The columns of a merged table, given all of its columns and those (`own`) that are silver's."""
    kept = {name: plain_type(kind) for name, kind in types.items() if name not in own}
    return Columns(kept, frozenset(name.lower() for name in left_out))


def name_among(names: Iterable[str], column: str) -> str | None:
    """The one of the names that means the column; names differ in more than case."""
    return next((name for name in names if name.lower() == column.lower()), None)


def plain_type(kind: str) -> str:
    """A type of silver as one text, whoever wrote it."""
    return kind.upper().replace(" ", "")


def held_type(column: Column) -> str:
    """The type that silver has for a shard's column, as one text."""
    return plain_type(silver_type(column))


def operations(altered: Altered, there: Columns) -> frozenset[Operation]:
    """What a change of a shard's structure asks of the merged table."""
    kept = {origin.was.lower() for origin in altered.origins if origin.was is not None}
    gone = [column.name.lower() for column in altered.before.columns if column.name.lower() not in kept]
    found = {Operation(Verb.DROP, name) for name in gone if there.name(name) is not None}
    before = {column.name: column for column in altered.before.columns}
    for origin, column in zip(altered.origins, altered.after.columns, strict=True):
        if column.name.lower() in there.left_out:
            continue
        found |= _of_column(before[origin.was] if origin.was is not None else None, column, there)
    return frozenset(found)


def _of_column(old: Column | None, new: Column, there: Columns) -> set[Operation]:
    name, kind = new.name.lower(), held_type(new)
    present = there.type(name)
    if old is not None and present is None and (was := there.type(old.name)) is not None:
        renamed = {Operation(Verb.RENAME, name, was=old.name.lower())}
        return renamed if was == kind else renamed | {Operation(Verb.RETYPE, name, type=kind)}
    if present is None:
        return {Operation(Verb.ADD, name, type=kind)}
    if old is not None and held_type(old) == kind:
        return set()  # its type did not change, whatever that of the merged table is
    return {Operation(Verb.RETYPE, name, type=kind)} if present != kind else set()


def holds(present: str, kind: str) -> bool:
    """A column of silver's type `present` can hold every value of the type `kind`, each as itself or as its text."""
    return present == kind or widens(kind, present) or (present == "STRING" and not kind.startswith(_NO_TEXT))


def _is_held(column: Column, there: Columns) -> bool:
    present = there.type(column.name)
    return present is not None and holds(present, held_type(column))


def joining(schema: TableSchema, there: Columns) -> Altered:
    """A shard that takes part from now on, as a change: what the merged table lacks of it is new."""
    known = tuple(column for column in schema.columns if _is_held(column, there))
    names = {column.name for column in known}
    origins = tuple(Origin(column.name if column.name in names else None, Fill()) for column in schema.columns)
    # A key that it shares is no change, and so no reason to cluster the merged table again.
    key = schema.primary_key if names.issuperset(schema.primary_key) else ()
    before = TableSchema(schema.schema, schema.table, known, key)
    return Altered(before, schema, origins)
