"""A table of the target, which may differ from the source's: its columns and keys determine how rows are identified."""

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
PRIMARY = "PRIMARY"


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """
    Attributes:
        collation: None for types other than text.
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
        parts: column and indexed prefix length; a column of None is an expression.
    """

    name: str
    parts: tuple[tuple[str | None, int | None], ...]


@dataclass(frozen=True, slots=True)
class TargetTable:
    """
    Attributes:
        schema, table: in the target's spelling; it may compare names without case.
        columns: by lower-case name.
        keys: the primary key first.
    """

    schema: str
    table: str
    columns: Mapping[str, TargetColumn]
    keys: tuple[TargetKey, ...] = ()

    @property
    def name(self) -> TableName:
        return self.schema, self.table


def read_target(ask: Ask, schema: str, table: str) -> TargetTable | None:
    """A table according to the target's information_schema; None if it does not exist."""
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
    keys = [TargetKey(name, tuple(key_parts)) for name, key_parts in parts.items()]
    keys.sort(key=lambda key: (key.name != PRIMARY, key.name))
    return TargetTable(written_schema, written_table, by_name, tuple(keys))


def read_collations(ask: Ask) -> frozenset[str]:
    """The names of all collations; MariaDB's that apply to several character sets are prefixed with each of them."""
    rows = ask(
        "SELECT CHARACTER_SET_NAME, COLLATION_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
    )
    return frozenset(name if name.startswith(charset) else f"{charset}_{name}" for charset, name in rows)
