"""Values of a source table as a client SELECTs them, converted to the documented values in silver."""

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import Any

from dmdelta.quality.json_compare import same_text
from tests.support.servers import Server

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column from information_schema; `type` is DATA_TYPE, `digits` NUMERIC_PRECISION."""

    name: str
    type: str
    digits: int


def source_columns(server: Server, database: str, table: str) -> tuple[list[SourceColumn], list[str]]:
    """All columns of a table, including invisible and generated ones, and the names of its primary key."""
    where = "TABLE_SCHEMA = %s AND TABLE_NAME = %s"
    found = server.query(
        f"SELECT COLUMN_NAME, DATA_TYPE, COALESCE(NUMERIC_PRECISION, 0) FROM information_schema.COLUMNS WHERE {where} ORDER BY ORDINAL_POSITION",
        arguments=(database, table),
    )
    keys = server.query(
        f"SELECT COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE WHERE {where} AND CONSTRAINT_NAME = 'PRIMARY' ORDER BY ORDINAL_POSITION",
        arguments=(database, table),
    )
    return [SourceColumn(name, kind.lower(), int(digits)) for name, kind, digits in found], [name for (name,) in keys]


def quoted(name: str) -> str:
    """A quoted name for a statement."""
    return f"`{name.replace('`', '``')}`"


def source_rows(
    server: Server, database: str, table: str, columns: list[SourceColumn], *, keep_odd: bool = False
) -> list[Row]:
    """Every row in a UTC session, as expected in silver; with `keep_odd` as expected in bronze: odd dates as text."""
    chosen = ", ".join(_selected(column) for column in columns)
    readers = [_READERS.get(column.type, _as_is) for column in columns]
    with (
        server.connect(database=database, init_command="SET time_zone = '+00:00'") as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(f"SELECT {chosen} FROM {quoted(table)}")
        return [
            tuple(
                _kept(value, read(value, column), keep_odd) if value is not None else None
                for value, read, column in zip(row, readers, columns, strict=True)
            )
            for row in cursor.fetchall()
        ]


def _kept(text: Any, value: Any, keep_odd: bool) -> Any:  # noqa: FBT001
    return text if value is None and keep_odd else value


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON value that is compared by meaning."""

    text: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Document) and _means_the_same(self.text, other.text)

    def __hash__(self) -> int:
        return 0


_remembered = lru_cache(maxsize=1 << 16)
"""Big tables repeat values: each is converted once."""
_means_the_same = _remembered(same_text)


def _selected(column: SourceColumn) -> str:
    name = quoted(column.name)
    if column.type in {"date", "datetime", "timestamp", "time"} or (column.type == "decimal" and column.digits > 38):
        return f"CAST({name} AS CHAR)"
    if column.type == "vector":
        return f"CAST({name} AS BINARY)"
    if column.type in {"float", "double"}:
        # A float's text has six digits, a DOUBLE(M,D)'s has D decimals; plain doubles have all digits.
        return f"{name} * 1e0"
    if column.type == "bit":
        return f"{name} + 0"
    return name


def _as_is(value: Any, column: SourceColumn) -> Any:
    return value


@_remembered
def _date(value: str, column: SourceColumn) -> date | None:
    try:
        return datetime.strptime(value, "%Y-%m-%d").date()  # noqa: DTZ007
    except ValueError:
        return None


@_remembered
def _datetime(value: str, column: SourceColumn) -> datetime | None:
    """None for invalid dates: zero dates and the like are NULL in silver."""
    try:
        return datetime.fromisoformat(_six_digits(value))
    except ValueError:
        return None


def _six_digits(value: str) -> str:
    return re.sub(r"\.(\d{1,6})$", lambda found: f".{found.group(1):0<6}", value)


def _name(value: str | bytes, column: SourceColumn) -> str:
    """Members in the character set `binary` come as bytes."""
    return value.decode() if isinstance(value, bytes) else value


def _geometry(value: bytes, column: SourceColumn) -> tuple[int, bytes]:
    return struct.unpack_from("<I", value)[0], value[4:]


def _vector(value: bytes, column: SourceColumn) -> list[float]:
    return list(struct.unpack(f"<{len(value) // 4}f", value))


_SHAPES = (
    "geometry",
    "point",
    "linestring",
    "polygon",
    "multipoint",
    "multilinestring",
    "multipolygon",
    "geometrycollection",
    "geomcollection",
)

_READERS: dict[str, Callable[[Any, SourceColumn], Any]] = {
    "enum": _name,
    "set": _name,
    "date": _date,
    "datetime": _datetime,
    "timestamp": _datetime,
    "json": lambda value, _: Document(value),
    "vector": _vector,
    "year": lambda value, _: int(value),
    "bit": lambda value, _: int(value),
    **dict.fromkeys(_SHAPES, _geometry),
}
