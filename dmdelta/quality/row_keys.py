"""Finds rows by their keys on both sides: key values read by Spark, as literals in the source's and Spark's SQL."""

from collections.abc import Sequence
from dataclasses import dataclass

from dmdelta.ddl.types.silver_types import silver_type
from dmdelta.model.schema import Column
from dmdelta.model.spark_sql import literal, quote
from dmdelta.model.type_names import BYTES, TEXTUAL, WHOLE

_NUMBERS = frozenset((*WHOLE, "decimal"))
_TIMES = frozenset(("date", "time", "datetime", "timestamp"))


@dataclass(frozen=True, slots=True)
class RowKey:
    """The key of one row.

    Attributes:
        text: its canonical text, which identifies the row (`dmdelta.quality.canonical`).
        parts: the value of each key column, in the form of `part_columns`.
    """

    text: str
    parts: tuple[str, ...]


def is_askable(key: Sequence[Column]) -> bool:
    """Whether rows can be looked up by these columns; floats cannot: their SQL literals are not exact."""
    return bool(key) and all(column.type in {*_NUMBERS, *_TIMES, *TEXTUAL, *BYTES} for column in key)


def part_columns(key: Sequence[Column]) -> list[str]:
    """The values of key columns as text, in Spark's SQL; bytes are hexadecimal."""
    names = [(quote(column.name), silver_type(column)) for column in key]
    return [f"hex({name})" if kind == "BINARY" else f"CAST({name} AS STRING)" for name, kind in names]


def source_among(key: Sequence[Column], keys: Sequence[RowKey]) -> str:
    """The condition (SQL) of the source's rows of some keys; the primary key's index serves it."""
    if len(key) == 1:
        return f"{quote(key[0].name)} IN ({', '.join(_source_literal(key[0], row.parts[0]) for row in keys)})"
    return " OR ".join(f"({' AND '.join(_equals(key, row))})" for row in keys)


def silver_among(key: Sequence[Column], key_text: str, keys: Sequence[RowKey]) -> str:
    """The condition (Spark's SQL) of silver's rows of some keys; Delta skips files by the first column's statistics.

    Args:
        key_text: the SQL of the key's canonical text.
    """
    firsts = dict.fromkeys(row.parts[0] for row in keys)
    first = f"{quote(key[0].name)} IN ({', '.join(_silver_literal(key[0], part) for part in firsts)})"
    if len(key) == 1:
        return first
    return f"{first} AND {key_text} IN ({', '.join(literal(row.text) for row in keys)})"


def _equals(key: Sequence[Column], row: RowKey) -> list[str]:
    pairs = zip(key, row.parts, strict=True)
    return [f"{quote(column.name)} = {_source_literal(column, part)}" for column, part in pairs]


def _source_literal(column: Column, part: str) -> str:
    """A value as a literal in the source's SQL, independent of NO_BACKSLASH_ESCAPES."""
    if column.type in _NUMBERS:
        return part
    if column.type in BYTES:
        return f"X'{part}'"
    if column.type in _TIMES:
        return f"'{part}'"
    return f"_utf8mb4 X'{part.encode().hex()}'"


def _silver_literal(column: Column, part: str) -> str:
    kind = silver_type(column)
    if kind == "BINARY":
        return f"X'{part}'"
    return literal(part) if kind == "STRING" else f"CAST({literal(part)} AS {kind})"
