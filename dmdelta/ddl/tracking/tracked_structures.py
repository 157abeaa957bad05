"""The structures of a source's tables at a position, tracked from statement to statement."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from dmdelta.ddl.parse.actions import Action, Add, Change, Convert, DropIndex, SetKey
from dmdelta.ddl.parse.defaults import altered_table, converts, database_charset
from dmdelta.ddl.parse.statements import dropped_index, is_conditional, statement_targets
from dmdelta.ddl.tracking.effects import Altered, Created, Dropped, Effect, Renamed, Unread
from dmdelta.ddl.tracking.statement_effects import statement_effects
from dmdelta.ddl.tracking.structures import default_charset
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.model.statement import LoggedStatement


class Origin(str, Enum):
    """The origin of a known structure."""

    TABLE_MAP = "table_map"
    SNAPSHOT = "snapshot"
    INFORMATION_SCHEMA = "information_schema"
    DDL = "ddl"
    UPDATE = "update"
    """Set by an operator: `dmdelta binlog-schema update`."""


@dataclass(frozen=True, slots=True)
class TrackedTable:
    """A table's structure.

    Attributes:
        charset: the default character set of its columns, None if unknown.
    """

    schema: TableSchema
    charset: str | None = None
    origin: Origin = Origin.DDL


@dataclass(frozen=True, slots=True)
class Structures:
    """The structures known at a position.

    Attributes:
        charsets: the default character sets of databases.
    """

    tables: Mapping[TableName, TrackedTable] = field(default_factory=dict)
    charsets: Mapping[str, str] = field(default_factory=dict)

    def charset_of(self, schema: str, table: str | None) -> str | None:
        """The default character set of a table, or with None of a database; None if unknown."""
        if table is None:
            return self.charsets.get(schema)
        tracked = self.tables.get((schema, table))
        return tracked.charset if tracked else None

    def after(self, statement: LoggedStatement, *, mariadb: bool = False) -> "Structures":
        """The structures after a statement; a structure that it does not determine becomes unknown. Never raises."""
        tables = dict(self.tables)
        altered = altered_table(statement.sql, statement.schema, mariadb=mariadb)
        if altered is not None and altered[0] in tables:
            tables[altered[0]] = _with_defaults(tables[altered[0]], altered[1], self.charsets)
        before = Structures(tables, self.charsets)
        effects = statement_effects(
            statement.sql,
            statement.schema,
            before._schema_of,
            mariadb=mariadb,
            charset_of=before.charset_of,
        )
        tables = dict(tables)
        for effect in effects:
            _apply(tables, effect)
        renamed = {effect.table: effect.to for effect in effects if isinstance(effect, Renamed)}
        for name in _tables_that_lose_their_key(self.tables, statement, altered):
            tables.pop(renamed.get(name, name), None)
        charsets = _charsets_after(self.charsets, statement)
        for target in statement_targets(statement.sql, statement.schema):
            if target.op == "drop_database":
                tables = {name: tracked for name, tracked in tables.items() if name[0] != target.schema}
                charsets.pop(target.schema, None)
        return self if tables == self.tables and charsets == self.charsets else Structures(tables, charsets)

    def _schema_of(self, name: TableName) -> TableSchema | None:
        tracked = self.tables.get(name)
        return tracked.schema if tracked else None


def _tables_that_lose_their_key(
    tables: Mapping[TableName, TrackedTable],
    statement: LoggedStatement,
    altered: tuple[TableName, tuple[Action, ...]] | None,
) -> list[TableName]:
    """The tables whose key is a unique index that a statement drops, or whose columns become nullable.

    Their structure becomes unknown: which index is the key now is not in the log.
    """
    keyed = {name: tracked.schema for name, tracked in tables.items() if tracked.schema.unique_key}
    dropped = dropped_index(statement.sql, statement.schema)
    if dropped is not None and dropped[0] in keyed:
        same = keyed[dropped[0]].unique_key.lower() == dropped[1].lower()
        return [dropped[0]] if same else []
    found = altered is not None and altered[0] in keyed and _loses_key(keyed[altered[0]], altered[1])
    return [altered[0]] if altered is not None and found else []


def _loses_key(schema: TableSchema, actions: tuple[Action, ...]) -> bool:
    key = {name.lower() for name in schema.primary_key}
    defined = [act for act in actions if isinstance(act, Add | Change)]
    if any(isinstance(act, SetKey) for act in actions) or any(act.definition.key for act in defined):
        return False
    # A column that replaces one that is dropped in the same statement is part of the index.
    nullable = {
        (act.was if isinstance(act, Change) else act.definition.name).lower()
        for act in defined
        if act.definition.nullable
    }
    dropped = {act.name.lower() for act in actions if isinstance(act, DropIndex)}
    return bool(key & nullable) or schema.unique_key.lower() in dropped


def _with_defaults(tracked: TrackedTable, actions: tuple[Action, ...], charsets: Mapping[str, str]) -> TrackedTable:
    """Apply the default character set of an ALTER TABLE; the collations that it changes become unknown."""
    charset = default_charset(actions)
    if charset is None and any(isinstance(action, Convert) for action in actions):
        charset = charsets.get(tracked.schema.schema)  # CONVERT TO CHARACTER SET DEFAULT
    schema = tracked.schema
    if converts(actions):
        schema = replace(schema, columns=tuple(replace(column, collation=None) for column in schema.columns))
    if (charset or tracked.charset) == tracked.charset and schema == tracked.schema:
        return tracked
    return TrackedTable(schema, charset or tracked.charset, Origin.DDL)


def _apply(tables: dict[TableName, TrackedTable], effect: Effect) -> None:
    if isinstance(effect, Altered):
        tables[effect.table] = replace(tables[effect.table], schema=effect.after, origin=Origin.DDL)
    elif isinstance(effect, Created) and effect.schema is not None:
        tables[effect.table] = TrackedTable(effect.schema, effect.charset)
    elif isinstance(effect, Created | Dropped | Unread):
        tables.pop(effect.table, None)
    elif isinstance(effect, Renamed):
        moved = tables.pop(effect.table, None)
        tables.pop(effect.to, None)
        if moved is not None:
            schema = replace(moved.schema, schema=effect.to[0], table=effect.to[1])
            tables[effect.to] = replace(moved, schema=schema, origin=Origin.DDL)


def _charsets_after(charsets: Mapping[str, str], statement: LoggedStatement) -> dict[str, str]:
    result = database_charset(statement.sql, statement.schema)
    known = dict(charsets)
    if result is None:
        return known
    verb, name, named_charset = result
    if verb == "CREATE":
        # Whether the database existed is unknown: if it was not known before, it is not known afterwards.
        charset = None if is_conditional(statement.sql) else named_charset or statement.server_charset
    else:
        charset = named_charset
    if charset is not None:
        known[name] = charset
    return known
