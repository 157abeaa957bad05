"""Rows found by their keys on both sides: values that Spark tells, as SQL of the source and of Spark."""

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
        text: its canonical text, which tells rows apart (`dmdelta.quality.canonical`).
        parts: the value of each key column, as `part_columns` tells it.
    """

    text: str
    parts: tuple[str, ...]


def is_askable(key: Sequence[Column]) -> bool:
    """Rows can be asked for by these columns: the values of floats are not exact in SQL."""
    return bool(key) and all(column.type in {*_NUMBERS, *_TIMES, *TEXTUAL, *BYTES} for column in key)


def part_columns(key: Sequence[Column]) -> list[str]:
    """The values of key columns as text, in Spark's SQL: bytes in hexadecimal."""
    names = [(quote(column.name), silver_type(column)) for column in key]
    return [f"hex({name})" if kind == "BINARY" else f"CAST({name} AS STRING)" for name, kind in names]


def source_among(key: Sequence[Column], keys: Sequence[RowKey]) -> str:
    """The condition (SQL) of the source's rows of some keys; an index finds them, whatever the key's columns."""
    if len(key) == 1:
        return f"{quote(key[0].name)} IN ({', '.join(_source_literal(key[0], row.parts[0]) for row in keys)})"
    return " OR ".join(f"({' AND '.join(_equals(key, row))})" for row in keys)


def silver_among(key: Sequence[Column], key_text: str, keys: Sequence[RowKey]) -> str:
    """The condition (Spark's SQL) of silver's rows of some keys; statistics of the first column skip files.

    Args:
        key_text: the SQL of a row's canonical key.
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
    """A value as the source's SQL; nothing in it depends on the server's way with backslashes."""
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
