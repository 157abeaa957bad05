"""Splits a table into key ranges: SQL conditions that together select every row exactly once."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dmdelta.model.mysql_sql import quoted_name
from dmdelta.model.schema import Column, TableSchema
from dmdelta.model.type_names import INTEGERS
from dmdelta.source.connection import query

if TYPE_CHECKING:
    from pymysql.connections import Connection

CHUNK_ROWS = 50_000
"""Approximate number of rows per chunk: seconds of work, a few megabytes."""
_PLAIN = frozenset({"decimal", "year"})
_QUOTED = frozenset({"date", "datetime", "timestamp"})
_TEXT = frozenset({"char", "varchar"})
_BYTES = frozenset({"binary", "varbinary"})
_ORDERED = frozenset(INTEGERS) | _PLAIN | _QUOTED | _TEXT | _BYTES


def key_ranges(connection: "Connection[Any]", table: TableSchema, rows: int, chunk_rows: int = CHUNK_ROWS) -> list[str]:
    """The conditions in key order; one empty condition for a table that is not split.

    An integer key is split evenly between its minimum and maximum, any other key by walking it. Tables are not split if
    they have no key, few rows (`rows`, an estimate), or a key of a type whose order SQL cannot express.

    Raises:
        SourceUnavailable, SourceError: the server does not answer.
    """
    by_name = {column.name: column for column in table.columns}
    key = [by_name[name] for name in table.primary_key]
    parts = -(-rows // chunk_rows)
    if parts <= 1 or not key or any(column.type not in _ORDERED for column in key):
        return [""]
    if len(key) == 1 and key[0].type in INTEGERS:
        return even_ranges(quoted_name(key[0].name), *_ends(connection, table, key[0]), parts)
    return list(_between(key, list(_walk(connection, table, key, chunk_rows))))


def even_ranges(name: str, least: int | None, greatest: int | None, parts: int) -> list[str]:
    """`parts` ranges of equal width; the first and the last are open, for rows that are inserted meanwhile."""
    if least is None or greatest is None:
        return [""]
    width = -(-(greatest - least + 1) // parts)
    cuts = list(range(least + width, greatest + 1, width))
    lower = ["", *(f"{name} >= {cut}" for cut in cuts)]
    upper = [*(f"{name} < {cut}" for cut in cuts), ""]
    return [" AND ".join(filter(None, pair)) for pair in zip(lower, upper, strict=True)]


def _ends(connection: "Connection[Any]", table: TableSchema, key: Column) -> tuple[int | None, int | None]:
    name = quoted_name(key.name)
    ((least, greatest),) = query(connection, f"SELECT MIN({name}), MAX({name}) FROM {_name(table)}")
    return least, greatest


Literals = tuple[str, ...]
"""The values of a key as SQL literals."""


def _walk(
    connection: "Connection[Any]", table: TableSchema, key: Sequence[Column], chunk_rows: int
) -> Iterator[Literals]:
    """Yields the key of every `chunk_rows`-th row in key order."""
    names = ", ".join(quoted_name(column.name) for column in key)
    texts = ", ".join(_as_text(column) for column in key)
    last: Literals | None = None
    while True:
        after = f"WHERE {_bound(key, last, '>', '>')} " if last else ""
        rows = query(
            connection, f"SELECT {texts} FROM {_name(table)} {after}ORDER BY {names} LIMIT 1 OFFSET {chunk_rows - 1}"
        )
        if not rows:
            return
        last = tuple(_literal(column, str(text)) for column, text in zip(key, rows[0], strict=True))
        yield last


def _between(key: Sequence[Column], cuts: Sequence[Literals]) -> Iterator[str]:
    """A range up to each cut, and one after the last."""
    for lower, upper in zip([None, *cuts], [*cuts, None], strict=True):
        bounds = [_bound(key, lower, ">", ">")] if lower else []
        bounds += [_bound(key, upper, "<", "<=")] if upper else []
        yield " AND ".join(bounds)


def _bound(key: Sequence[Column], values: Literals, sign: str, last: str) -> str:
    """Rows on one side of a key; `last` compares the last column. No tuples: MySQL uses no range scan for them."""
    names = [quoted_name(column.name) for column in key]
    ways = []
    for place, (name, value) in enumerate(zip(names, values, strict=True), 1):
        equal = [f"{before} = {same}" for before, same in zip(names[: place - 1], values, strict=False)]
        ways.append(" AND ".join([*equal, f"{name} {last if place == len(names) else sign} {value}"]))
    outer = f"{names[0]} {sign}= {values[0]}"
    return f"{outer} AND ({' OR '.join(f'({way})' for way in ways)})"


def _as_text(column: Column) -> str:
    name = quoted_name(column.name)
    return f"HEX({name})" if column.type in _TEXT | _BYTES else f"CAST({name} AS CHAR)"


def _literal(column: Column, text: str) -> str:
    if column.type in _BYTES:
        return f"X'{text}'"
    if column.type in _TEXT:
        # The bytes in the column's own character set: lossless, and the column's collation decides the order.
        return f"_{column.charset} X'{text}'"
    return f"'{text}'" if column.type in _QUOTED else text


def _name(table: TableSchema) -> str:
    return quoted_name(table.schema, table.table)
