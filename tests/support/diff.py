"""Compares silver with the source row by row, and bronze with the server's own binlog event by event."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention
from pyspark.sql import types as T  # noqa: N812 - Spark's convention

from dmdelta.model.spark_sql import quote
from tests.support.servers import Server
from tests.support.values import Document, Row, SourceColumn, source_columns, source_rows

_SHOWN = 20
_OURS = "_dm_"


def assert_same(server: Server, database: str, tables: Iterable[str], read_silver: Callable[[str], DataFrame]) -> None:
    """Check that each silver table (`read_silver(table)`) equals the source; the AssertionError lists differences."""
    found = [line for table in tables for line in diff_table(server, database, table, read_silver(table))]
    assert not found, f"{len(found)} differences:\n" + "\n".join(found[:_SHOWN])


def diff_table(server: Server, database: str, table: str, silver: DataFrame) -> list[str]:
    """The differences between a source table and its silver table, one per line; empty: they are equal."""
    return [str(difference) for difference in differences(server, database, table, silver)]


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference; `column` and `key` are None if they do not apply."""

    table: str
    text: str
    column: str | None = None
    key: Row | None = None

    def __str__(self) -> str:
        return f"{self.table}{f'.{self.column}' if self.column else ''} {self.key or ''} {self.text}"


def differences(server: Server, database: str, table: str, silver: DataFrame) -> list[Difference]:
    """The differences between a source table and its silver table; empty: they are equal."""
    columns, keys = source_columns(server, database, table)
    names = [column.name for column in columns]
    ours = [name for name in silver.columns if not name.startswith(_OURS)]
    if sorted(names) != sorted(ours):
        return [Difference(table, f"columns {ours} in silver, {names} in the source")]
    source = source_rows(server, database, table, columns)
    landed = silver_rows(silver, names)
    if keys:
        return _diff_by_key(table, columns, [names.index(key) for key in keys], source, landed)
    return _diff_as_bags(table, source, landed)


def silver_rows(silver: DataFrame, names: list[str]) -> list[Row]:
    """The rows of a silver table in the forms that `source_rows` gives."""
    kinds = {field.name: field.dataType for field in silver.schema.fields}
    chosen = [_expression(name, kinds[name]).alias(f"c{number}") for number, name in enumerate(names)]
    readers = [_reader(kinds[name]) for name in names]
    rows = silver.select(*chosen).collect()
    return [
        tuple(None if value is None else read(value) for value, read in zip(row, readers, strict=True)) for row in rows
    ]


def _expression(name: str, kind: T.DataType) -> Any:
    column = F.col(quote(name))
    if isinstance(kind, T.VariantType):
        return F.to_json(column)
    if isinstance(kind, T.TimestampType):
        return F.unix_micros(column)
    return column


def _reader(kind: T.DataType) -> Callable[[Any], Any]:
    if isinstance(kind, T.VariantType):
        return Document
    if isinstance(kind, T.TimestampType):
        return _moment
    if isinstance(kind, T.StructType):
        return lambda shape: (shape["srid"], bytes(shape["wkb"]))
    if isinstance(kind, T.BinaryType):
        return bytes
    return lambda value: value


@lru_cache(maxsize=1 << 16)
def _moment(micros: int) -> datetime:
    return datetime.fromtimestamp(micros // 10**6, timezone.utc).replace(tzinfo=None, microsecond=micros % 10**6)


def _diff_by_key(
    table: str, columns: list[SourceColumn], at: list[int], source: list[Row], silver: list[Row]
) -> list[Difference]:
    def keyed(rows: list[Row]) -> dict[Row, Row]:
        return {tuple(row[place] for place in at): row for row in rows}

    wanted, found = keyed(source), keyed(silver)
    lines = [Difference(table, "missing in silver", key=key) for key in wanted if key not in found]
    lines += [Difference(table, "in silver but not in the source", key=key) for key in found if key not in wanted]
    if len(found) != len(silver):
        doubled = [
            key for key, count in Counter(tuple(row[place] for place in at) for row in silver).items() if count > 1
        ]
        lines += [Difference(table, "more than once in silver", key=key) for key in doubled]
    for key in wanted.keys() & found.keys():
        pairs = zip(columns, wanted[key], found[key], strict=True)
        lines += [
            Difference(table, f"source {_short(left)}, silver {_short(right)}", column.name, key)
            for column, left, right in pairs
            if not _same(left, right)
        ]
    return lines


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 200 else f"{text[:150]}… ({len(text)} characters) …{text[-30:]}"


def _same(left: Any, right: Any) -> bool:
    return (left is None) == (right is None) and left == right


def _diff_as_bags(table: str, source: list[Row], silver: list[Row]) -> list[Difference]:
    wanted, found = Counter(map(_hashable, source)), Counter(map(_hashable, silver))
    less = [
        Difference(table, f"{_short(row)}: {count} times less in silver") for row, count in (wanted - found).items()
    ]
    more = [
        Difference(table, f"{_short(row)}: {count} times more in silver") for row, count in (found - wanted).items()
    ]
    return less + more


def _hashable(row: Row) -> Row:
    return tuple(tuple(value) if isinstance(value, list) else value for value in row)
