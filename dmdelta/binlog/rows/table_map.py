"""The table map event: the table that the following row images belong to, and its column metadata.

Format: mysql/binlog/event/rows_event.h (`Table_map_event`, "optional metadata fields"); MariaDB writes the same fields.
"""

from dataclasses import dataclass, field
from enum import IntEnum

from dmdelta.binlog.events.header import HEADER_SIZE
from dmdelta.binlog.values.column_types import CHARACTER, NUMERIC, WireColumn, WireType, parse_columns
from dmdelta.binlog.wire import bitmap_size, packed_bytes, packed_int, set_bits
from dmdelta.errors import CorruptBinlog

TABLE_ID_SIZE = 6
_NAMES_AT = HEADER_SIZE + TABLE_ID_SIZE + 2
_ENUMS = frozenset({WireType.ENUM, WireType.SET})


class MetadataField(IntEnum):
    """Kinds of optional metadata that are read."""

    SIGNEDNESS = 1
    DEFAULT_CHARSET = 2
    COLUMN_CHARSET = 3
    COLUMN_NAME = 4
    SET_STR_VALUE = 5
    ENUM_STR_VALUE = 6
    SIMPLE_PRIMARY_KEY = 8
    PRIMARY_KEY_WITH_PREFIX = 9
    ENUM_AND_SET_DEFAULT_CHARSET = 10
    ENUM_AND_SET_COLUMN_CHARSET = 11
    COLUMN_VISIBILITY = 12


@dataclass(frozen=True, slots=True)
class TableMap:
    """A table map event.

    Attributes:
        unsigned: of each column; None if not in the event (MySQL 5.7).
        collations: ID of each character, enum and set column, 0 for others and if not in the event.
        names: of the columns; empty if not in the event (row metadata MINIMAL).
        members: of each enum and set column, as bytes in the column's character set.
        primary_key: column numbers.
    """

    schema: str
    table: str
    columns: tuple[WireColumn, ...]
    nullable: tuple[bool, ...]
    unsigned: tuple[bool, ...] | None = None
    collations: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    members: dict[int, tuple[bytes, ...]] = field(default_factory=dict)
    primary_key: tuple[int, ...] = ()
    visible: tuple[bool, ...] | None = None


def table_names(event: bytes) -> tuple[str, str]:
    """(schema, table) of a table map event, without parsing the rest.

    Raises:
        CorruptBinlog: the event is truncated.
    """
    try:
        schema, at = _name(event, _NAMES_AT)
        return schema, _name(event, at)[0]
    except (IndexError, UnicodeDecodeError) as damage:
        raise _unreadable(damage) from damage


def _name(event: bytes, at: int) -> tuple[str, int]:
    """The name at `at`, with a length before it and a NUL after it; also returns the offset after the NUL."""
    end = at + 1 + event[at]
    if event[end]:
        raise IndexError("a name is not terminated")
    return event[at + 1 : end].decode(), end + 1


def _unreadable(damage: Exception) -> CorruptBinlog:
    return CorruptBinlog(f"cannot read a table map: {damage}", hint="report this event to the project")


def parse_table_map(event: bytes, *, mariadb: bool = False) -> TableMap:
    """Parse a whole table map event (header included, checksum not).

    MariaDB includes geometries in the columns with a character set, MySQL 9 vectors.

    Raises:
        CorruptBinlog: the event is truncated.
        UnsupportedEvent: an unknown column type or collation.
    """
    try:
        return _parse(event, CHARACTER | {WireType.GEOMETRY if mariadb else WireType.VECTOR})
    except (IndexError, ValueError) as damage:
        raise _unreadable(damage) from damage


def _parse(event: bytes, character: frozenset[WireType]) -> TableMap:
    schema, at = _name(event, _NAMES_AT)
    table, at = _name(event, at)
    count, at = packed_int(event, at)
    types = event[at : at + count]
    metadata, at = packed_bytes(event, at + count)
    columns = parse_columns(types, metadata)
    nulls = set(set_bits(event[at : at + bitmap_size(count)], count))
    optional = _Optional(columns, character)
    optional.parse(event[at + bitmap_size(count) :])
    optional.check()
    return TableMap(
        schema=schema,
        table=table,
        columns=columns,
        nullable=tuple(number in nulls for number in range(count)),
        unsigned=optional.unsigned,
        collations=tuple(optional.collations),
        names=tuple(optional.names),
        members=optional.members,
        primary_key=tuple(optional.primary_key),
        visible=optional.visible,
    )


class _Optional:
    """Reads the type-length-value block at the end of a table map."""

    def __init__(self, columns: tuple[WireColumn, ...], character: frozenset[WireType]) -> None:
        self._columns = columns
        self._character = character
        self.unsigned: tuple[bool, ...] | None = None
        self.collations = [0] * len(columns)
        self.names: list[str] = []
        self.members: dict[int, tuple[bytes, ...]] = {}
        self.primary_key: list[int] = []
        self.visible: tuple[bool, ...] | None = None

    def parse(self, block: bytes) -> None:
        at = 0
        while at < len(block):
            kind = block[at]
            value, at = packed_bytes(block, at + 1)
            self._field(kind, value)

    def check(self) -> None:
        """Check that names and key match the table's columns; ValueError if not."""
        if self.names and len(self.names) != len(self._columns):
            raise ValueError(f"{len(self.names)} names for {len(self._columns)} columns")
        if len(set(self.names)) != len(self.names):
            raise ValueError("two columns have the same name")
        if any(number >= len(self._columns) for number in self.primary_key):
            raise ValueError("the primary key has a column that the table does not have")

    def _field(self, kind: int, value: bytes) -> None:
        columns = range(len(self._columns))
        if kind == MetadataField.SIGNEDNESS:
            numbers = self._of(NUMERIC)
            flags = _high_bits(value, len(numbers))
            self.unsigned = tuple(number in numbers and flags[numbers.index(number)] for number in columns)
        elif kind == MetadataField.DEFAULT_CHARSET:
            self._default_charset(value, self._of(self._character))
        elif kind == MetadataField.COLUMN_CHARSET:
            self._column_charset(value, self._of(self._character))
        elif kind == MetadataField.ENUM_AND_SET_DEFAULT_CHARSET:
            self._default_charset(value, self._of(_ENUMS))
        elif kind == MetadataField.ENUM_AND_SET_COLUMN_CHARSET:
            self._column_charset(value, self._of(_ENUMS))
        elif kind == MetadataField.COLUMN_NAME:
            self.names = [name.decode() for name in _strings(value)]
        elif kind == MetadataField.SET_STR_VALUE:
            self._members(value, self._of(frozenset({WireType.SET})))
        elif kind == MetadataField.ENUM_STR_VALUE:
            self._members(value, self._of(frozenset({WireType.ENUM})))
        elif kind == MetadataField.SIMPLE_PRIMARY_KEY:
            self.primary_key = _integers(value)
        elif kind == MetadataField.PRIMARY_KEY_WITH_PREFIX:
            self.primary_key = _integers(value)[::2]
        elif kind == MetadataField.COLUMN_VISIBILITY:
            self.visible = _high_bits(value, len(self._columns))
        # Other fields change no value (types of geometries, dimensions of vectors) or are of newer servers; MySQL's own
        # replicas ignore unknown fields here.

    def _of(self, kinds: frozenset[WireType]) -> list[int]:
        return [number for number, column in enumerate(self._columns) if column.type in kinds]

    def _default_charset(self, value: bytes, numbers: list[int]) -> None:
        default, *pairs = _integers(value)
        exceptions = dict(zip(pairs[::2], pairs[1::2], strict=True))
        for ordinal, number in enumerate(numbers):
            self.collations[number] = exceptions.get(ordinal, default)

    def _column_charset(self, value: bytes, numbers: list[int]) -> None:
        for number, collation in zip(numbers, _integers(value), strict=True):
            self.collations[number] = collation

    def _members(self, value: bytes, numbers: list[int]) -> None:
        at = 0
        for number in numbers:
            count, at = packed_int(value, at)
            names: list[bytes] = []
            for _ in range(count):
                name, at = packed_bytes(value, at)
                names.append(name)
            self.members[number] = tuple(names)


def _high_bits(value: bytes, count: int) -> tuple[bool, ...]:
    """Flags of a bitmap whose first flag is the highest bit of the first byte."""
    return tuple(bool(value[number >> 3] & (0x80 >> (number & 7))) for number in range(count))


def _integers(value: bytes) -> list[int]:
    numbers: list[int] = []
    at = 0
    while at < len(value):
        number, at = packed_int(value, at)
        numbers.append(number)
    return numbers


def _strings(value: bytes) -> list[bytes]:
    texts: list[bytes] = []
    at = 0
    while at < len(value):
        text, at = packed_bytes(value, at)
        texts.append(text)
    return texts
