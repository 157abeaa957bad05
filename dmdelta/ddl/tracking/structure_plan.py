"""The structures of all tables in a batch of the log: a pure plan.

Statements are applied one by one. What they do not determine is taken from information_schema, as read when the log was
at a later position: between a table's last statement before that position and the position itself nothing changed, so
the structure that was read is certain there, whatever happened before.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dmdelta.ddl.parse.actions import Convert, DefaultCharset, RenameTo, Unknown
from dmdelta.ddl.parse.defaults import altered_table
from dmdelta.ddl.parse.statements import created_unique_index, is_conditional, statement_targets
from dmdelta.ddl.tracking.tracked_structures import Origin, Structures, TrackedTable
from dmdelta.ddl.types.type_words import is_text
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, StructureFrom, TableName, TableSchema
from dmdelta.model.statement import LoggedStatement

_Key = tuple[str, str | None]
"""A table, or with None a database."""
_CHANGES_NONE = ("create_index", "truncate_table")


@dataclass(frozen=True, slots=True)
class Catalog:
    """The content of information_schema when the log ended at `at`.

    Attributes:
        keyed: the tables with a primary key; other tables' key is a unique index, which statements do not determine.
    """

    at: Position
    structures: Structures
    keyed: frozenset[TableName] = frozenset()


@dataclass(frozen=True, slots=True)
class StructureChange:
    """A change after `position` of a table's structure, or with `table` None of a database's default character set.

    Attributes:
        tracked: None if the table was dropped or its structure is unknown.
        surprise: information_schema has a structure that differs from the one derived from statements.
        lost: a statement on the table was not understood.
    """

    position: Position
    schema: str
    table: str | None
    tracked: TrackedTable | None = None
    charset: str | None = None
    surprise: bool = False
    lost: bool = False

    @property
    def structure(self) -> TableSchema | None:
        return self.tracked.schema if self.tracked is not None else None


@dataclass(frozen=True, slots=True)
class LogAhead:
    """A batch [begin, end) and the statements from its begin, including those between its end and the catalog's
    position.
    """

    begin: Position
    end: Position
    statements: Sequence[LoggedStatement]


@dataclass(frozen=True, slots=True)
class StructurePlan:
    """The structures in a batch.

    Attributes:
        before: the structures at the batch's begin.
        changes: the changes, in log order, including those at the batch's begin.
        after: the structures at the batch's end.
    """

    before: Structures
    changes: tuple[StructureChange, ...]
    after: Structures

    def structures(self, begin: Position) -> list[StructureFrom]:
        """Each table's structures in the batch, which starts at `begin`, with their positions."""
        known = [StructureFrom(name, begin, tracked.schema) for name, tracked in self.before.tables.items()]
        changed = [
            StructureFrom((change.schema, change.table), change.position, change.structure)
            for change in self.changes
            if change.table is not None
        ]
        return [*known, *changed]


@dataclass(slots=True)
class _Draft:
    """The plan under construction."""

    known: Structures
    changes: list[StructureChange] = field(default_factory=list)

    def advance(self, after: Structures, position: Position, surprises: Iterable[_Key], lost: Iterable[_Key]) -> None:
        before, surprises, lost = self.known, set(surprises), set(lost)
        for name in dict.fromkeys((*before.tables, *after.tables)):
            tracked = after.tables.get(name)
            if tracked is not before.tables.get(name) and tracked != before.tables.get(name):
                change = StructureChange(position, *name, tracked, tracked.charset if tracked else None)
                self.changes.append(replace(change, surprise=name in surprises, lost=name in lost))
        for schema in dict.fromkeys((*before.charsets, *after.charsets)):
            if before.charsets.get(schema) != (charset := after.charsets.get(schema)):
                self.changes.append(StructureChange(position, schema, None, charset=charset))
        self.known = after


def plan_structures(known: Structures, log: LogAhead, catalog: Catalog | None, *, mariadb: bool) -> StructurePlan:
    """Apply a batch's statements to the structures `known` at its begin."""
    draft = _Draft(known)
    usable = catalog if catalog is not None and catalog.at > log.begin else None
    fills = _fills(usable, log) if usable else {}
    if usable is not None:
        _fill(draft, usable, fills[None], log.begin)
    before = draft.known
    for statement in log.statements:
        if statement.position >= log.end:
            break
        after = draft.known.after(statement, mariadb=mariadb)
        draft.advance(after, statement.position, (), _not_understood(draft.known, after, statement))
        if usable is not None:
            _fill(draft, usable, fills[statement.position], statement.position)
    return StructurePlan(before, tuple(draft.changes), draft.known)


@dataclass(slots=True)
class _Fills:
    """What information_schema determines from one position on.

    Attributes:
        keys: tables, and databases' default character sets.
        keyless: tables whose key in information_schema is a unique index that a later statement creates.
        defaults: tables of which it determines the default character set, but not the columns.
    """

    keys: list[_Key] = field(default_factory=list)
    keyless: set[TableName] = field(default_factory=set)
    defaults: list[TableName] = field(default_factory=list)


def _fills(catalog: Catalog, log: LogAhead) -> Mapping[Position | None, _Fills]:
    """The fills by the statement after which they apply; None: from the batch's begin."""
    last: dict[_Key, Position] = {}
    last_default: dict[_Key, Position] = {}
    indexed: dict[TableName, Position] = {}
    dropped: dict[str, Position] = {}
    for statement in log.statements:
        if statement.position >= catalog.at:
            break
        if is_conditional(statement.sql):
            continue  # it changed nothing, or created the structure at the end
        created = created_unique_index(statement.sql, statement.schema)
        if created is not None and _is_key(catalog, *created):
            indexed[created[0]] = statement.position
        for target in statement_targets(statement.sql, statement.schema):
            if target.op == "drop_database":
                dropped[target.schema] = statement.position
            if target.op not in _CHANGES_NONE:
                last[target.schema, target.table] = statement.position
                if _may_change_default(statement):
                    last_default[target.schema, target.table] = statement.position
    fills: dict[Position | None, _Fills] = defaultdict(_Fills)
    for key in (*catalog.structures.tables, *((schema, None) for schema in catalog.structures.charsets)):
        positions = [at for at in (last.get(key), dropped.get(key[0])) if at is not None]
        found = max(positions, default=None)
        fills[found].keys.append(key)
        if key in indexed and (found is None or found < indexed[key]):
            fills[found].keyless.add(key)
    for name in catalog.structures.tables:
        positions = [at for at in (last_default.get(name), dropped.get(name[0])) if at is not None]
        fills[max(positions, default=None)].defaults.append(name)
    return fills


def _is_key(catalog: Catalog, name: TableName, index: str) -> bool:
    """Whether a unique index is the key that information_schema has."""
    tracked = catalog.structures.tables.get(name)
    return tracked is not None and name not in catalog.keyed and tracked.schema.unique_key.lower() == index.lower()


def _may_change_default(statement: LoggedStatement) -> bool:
    """Whether the statement is anything but an ALTER TABLE that leaves the table's default character set unchanged."""
    altered = altered_table(statement.sql, statement.schema)
    if altered is None:
        return True
    _, actions = altered
    return any(isinstance(action, DefaultCharset | Convert | RenameTo | Unknown) for action in actions)


def _fill(draft: _Draft, catalog: Catalog, fills: _Fills, at: Position) -> None:
    tables, charsets, surprises = dict(draft.known.tables), dict(draft.known.charsets), set[_Key]()
    for name in fills.defaults:
        if name in tables and tables[name].charset is None:
            tables[name] = replace(tables[name], charset=catalog.structures.tables[name].charset)
    for schema, table in fills.keys:
        if table is None:
            charsets[schema] = catalog.structures.charsets[schema]
            continue
        name = (schema, table)
        tracked, catalogued = tables.get(name), catalog.structures.tables[name]
        if tracked is None:
            tables[name] = _without_key(catalogued) if name in fills.keyless else catalogued
        elif tracked.origin is not Origin.UPDATE:
            tables[name], surprising = _merged(tracked, catalogued, keyed=name in catalog.keyed)
            if surprising:
                surprises.add(name)
    draft.advance(Structures(tables, charsets), at, surprises, ())


def _without_key(tracked: TrackedTable) -> TrackedTable:
    return replace(tracked, schema=replace(tracked.schema, primary_key=(), unique_key=""))


def _merged(tracked: TrackedTable, catalogued: TrackedTable, *, keyed: bool) -> tuple[TrackedTable, bool]:
    """Combine a known structure with information_schema's; also returns whether they differ."""
    names = {column.name for column in catalogued.schema.columns}
    key, unique = tracked.schema.primary_key, tracked.schema.unique_key
    keeps_key = not keyed and (bool(unique) or not key) and names.issuperset(key)
    schema = replace(catalogued.schema, primary_key=key, unique_key=unique) if keeps_key else catalogued.schema
    agrees = schema.primary_key == key and _agree(tracked.schema, schema)
    merged = TrackedTable(schema, catalogued.charset, tracked.origin if agrees else catalogued.origin)
    return merged, not agrees


def _agree(tracked: TableSchema, catalogued: TableSchema) -> bool:
    """Whether the columns are the same, except for what statements leave open."""
    return len(tracked.columns) == len(catalogued.columns) and all(
        _core(one, other) == _core(other, other) for one, other in zip(tracked.columns, catalogued.columns, strict=True)
    )


def _core(column: Column, catalogued: Column) -> Column:
    if column.charset == "binary":  # an ENUM or SET of bytes, for which the catalog has no character set
        column = replace(column, charset=None)
    if is_text(column) and column.charset is None:
        column = replace(column, charset=catalogued.charset, length=catalogued.length)
    for family in ("text", "blob"):
        if column.type.endswith(family) and catalogued.type.endswith(family):
            column = replace(column, type=catalogued.type)
    return replace(column, nullable=True, visible=True, collation=None)


def _not_understood(before: Structures, after: Structures, statement: LoggedStatement) -> list[_Key]:
    """The tables that were known before a statement that only alters them, and are unknown after it."""
    targets = statement_targets(statement.sql, statement.schema)
    names = [(target.schema, target.table) for target in targets if target.op in ("alter_table", "drop_index")]
    renamed = any(target.op == "rename_table" for target in targets)
    return [name for name in names if name in before.tables and name not in after.tables and not renamed]
