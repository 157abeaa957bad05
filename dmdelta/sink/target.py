"""A table of the target as it is, which need not be as the source's: its columns and keys decide how rows are found."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dmdelta.model.schema import TableName

Ask = Callable[..., Sequence[tuple[Any, ...]]]
"""Runs a query with its arguments on the target; its rows."""

_COLUMNS = """SELECT COLUMN_NAME, DATA_TYPE, COLLATION_NAME, GENERATION_EXPRESSION, IS_NULLABLE, TABLE_SCHEMA,
    TABLE_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION"""
_KEYS = """SELECT INDEX_NAME, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS
    WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND NON_UNIQUE = 0 ORDER BY INDEX_NAME, SEQ_IN_INDEX"""
_PARENTS = """SELECT CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME,
    REFERENCED_COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s
    AND REFERENCED_TABLE_NAME IS NOT NULL ORDER BY CONSTRAINT_NAME, ORDINAL_POSITION"""
_FOREIGN_KEYS = """SELECT CONSTRAINT_SCHEMA, TABLE_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME,
    DELETE_RULE IN ('NO ACTION', 'RESTRICT') AND UPDATE_RULE IN ('NO ACTION', 'RESTRICT')
    FROM information_schema.REFERENTIAL_CONSTRAINTS"""
PRIMARY = "PRIMARY"


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """
    Attributes:
        collation: None for what is no text.
        generated: the server computes it: it takes no values.
    """

    name: str
    type: str
    collation: str | None = None
    generated: bool = False
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class TargetKey:
    """A primary or unique key.

    Attributes:
        parts: column and the length of the prefix that the index holds; a column of None is an expression.
    """

    name: str
    parts: tuple[tuple[str | None, int | None], ...]


@dataclass(frozen=True, slots=True)
class Parent:
    """A foreign key: the columns here, the table there and its columns."""

    columns: tuple[str, ...]
    schema: str
    table: str
    referenced: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TargetTable:
    """
    Attributes:
        schema, table: as the target writes them; it may compare names without case.
        columns: by lower-case name.
        keys: the primary key first.
    """

    schema: str
    table: str
    columns: Mapping[str, TargetColumn]
    keys: tuple[TargetKey, ...] = ()
    parents: tuple[Parent, ...] = ()

    @property
    def name(self) -> TableName:
        return self.schema, self.table


def read_target(ask: Ask, schema: str, table: str) -> TargetTable | None:
    """What the target's information_schema says about a table; None if it is not there."""
    rows = ask(_COLUMNS, (schema, table))
    if not rows:
        return None
    columns = [
        TargetColumn(name, kind.lower(), collation, bool(expression), nullable == "YES")
        for name, kind, collation, expression, nullable, _, _ in rows
    ]
    by_name = {column.name.lower(): column for column in columns}
    *_, written_schema, written_table = rows[0]
    parts: dict[str, list[tuple[str | None, int | None]]] = {}
    for index, column, prefix in ask(_KEYS, (schema, table)):
        parts.setdefault(index, []).append((column, prefix))
    keys = [TargetKey(name, tuple(found)) for name, found in parts.items()]
    keys.sort(key=lambda key: (key.name != PRIMARY, key.name))
    foreign: dict[str, list[tuple[str, str, str, str]]] = {}
    for name, *rest in ask(_PARENTS, (schema, table)):
        foreign.setdefault(name, []).append((rest[0], rest[1], rest[2], rest[3]))
    parents = tuple(
        Parent(tuple(one[0] for one in found), found[0][1], found[0][2], tuple(one[3] for one in found))
        for found in foreign.values()
    )
    return TargetTable(written_schema, written_table, by_name, tuple(keys), parents)


def read_cascades(ask: Ask) -> dict[TableName, str]:
    """The tables whose rows foreign keys change by themselves (CASCADE, SET NULL), and all that foreign keys join to
    them: what they have in common, as a name.
    """
    groups: dict[TableName, set[TableName]] = {}
    changed: set[TableName] = set()
    for schema, table, other_schema, other_table, steady in ask(_FOREIGN_KEYS):
        child, parent = (schema, table), (other_schema, other_table)
        joined = groups.get(child, {child}) | groups.get(parent, {parent})
        groups.update(dict.fromkeys(joined, joined))
        changed |= set() if steady else {child}
    return {name: f"cascades of {'.'.join(min(group))}" for name, group in groups.items() if group & changed}


def read_collations(ask: Ask) -> frozenset[str]:
    """The names of all collations; those that MariaDB has for several character sets with the character set ahead."""
    found = ask(
        "SELECT CHARACTER_SET_NAME, COLLATION_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
    )
    return frozenset(name if name.startswith(charset) else f"{charset}_{name}" for charset, name in found)
