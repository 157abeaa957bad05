"""Table maps: columns, and the optional fields of MySQL 8 and MariaDB by their numbers."""

import struct
from collections.abc import Sequence

import pytest

from dmdelta.binlog.rows.table_map import TableMap, parse_table_map, table_names
from dmdelta.binlog.values.column_types import WireColumn, WireType
from dmdelta.errors import CorruptBinlog
from tests.support.changes import packed, table_map_body

TINY, INT, DOUBLE, YEAR = (1, b""), (3, b""), (5, b"\x08"), (13, b"")
VARCHAR, CHAR, TEXT = (15, b"\x50\x00"), (254, b"\xfe\x14"), (252, b"\x02")
ENUM, SET, GEOMETRY, VECTOR = (254, b"\xf7\x01"), (254, b"\xf8\x01"), (255, b"\x04"), (242, b"\x04")


def field(kind: int, value: bytes) -> bytes:
    """A field of the optional metadata."""
    return bytes((kind,)) + packed(len(value)) + value


def texts(*values: str) -> bytes:
    return b"".join(packed(len(value.encode())) + value.encode() for value in values)


def numbers(*values: int) -> bytes:
    return b"".join(map(packed, values))


def parsed(columns: Sequence[tuple[int, bytes]], *optional: bytes, mariadb: bool = False, **table) -> TableMap:
    """A table map of columns with optional fields, parsed."""
    body = table_map_body(columns, b"".join(optional), **table)
    event = struct.pack("<IBIIIH", 1, 19, 1, 19 + len(body), 0, 0) + body
    found = parse_table_map(event, mariadb=mariadb)
    assert table_names(event) == (found.schema, found.table)
    return found


def test_without_optional_fields_only_types_are_known() -> None:
    """As MySQL 5.7 logs it; nullability is always known."""
    found = parsed([INT, VARCHAR], nulls=b"\x02", name=("shop", "é"))
    assert found == TableMap(
        schema="shop",
        table="é",
        columns=(WireColumn(WireType.LONG), WireColumn(WireType.VARCHAR, 80)),
        nullable=(False, True),
        unsigned=None,
        collations=(0, 0),
        names=(),
        members={},
        primary_key=(),
        visible=None,
    )


@pytest.mark.parametrize(
    ("nulls", "nullable"), [(b"\x01\x00", [0]), (b"\x80\x00", [7]), (b"\x00\x01", [8]), (b"\xff\x03", range(10))]
)
def test_columns_are_nullable_one_by_one(nulls: bytes, nullable: Sequence[int]) -> None:
    """The lowest bit of the first byte is the first column's."""
    found = parsed([INT] * 10, nulls=nulls)
    assert [number for number, flag in enumerate(found.nullable) if flag] == list(nullable)


def test_signs_are_those_of_the_numeric_columns() -> None:
    """The highest bit is the first number's; columns that are not numbers have none."""
    columns = [INT, VARCHAR, TINY, DOUBLE, YEAR, *[INT] * 5, TEXT, INT]
    found = parsed(columns, field(1, b"\x50\x80"))
    assert found.unsigned == tuple(number in (2, 4, 9) for number in range(12))
    assert parsed(columns, field(1, b"\x00\x40")).unsigned == tuple(number == 11 for number in range(12))


@pytest.mark.parametrize(
    ("optional", "collations"),
    [
        (field(2, numbers(45)), (45, 0, 45, 45, 0, 0)),
        (field(2, numbers(45, 1, 8, 2, 309)), (45, 0, 8, 309, 0, 0)),
        (field(3, numbers(45, 8, 309)), (45, 0, 8, 309, 0, 0)),
        (field(10, numbers(33)), (0, 0, 0, 0, 33, 33)),
        (field(10, numbers(33, 1, 255)), (0, 0, 0, 0, 33, 255)),
        (field(11, numbers(8, 63)), (0, 0, 0, 0, 8, 63)),
        (field(3, numbers(1, 2, 3)) + field(11, numbers(4, 5)), (1, 0, 2, 3, 4, 5)),
    ],
    ids=["one", "exceptions", "each", "enums", "exceptions of enums", "each of enums", "both"],
)
def test_collations_are_a_default_with_exceptions_or_a_list(optional: bytes, collations: tuple[int, ...]) -> None:
    """Text columns and those of ENUM and SET have fields of their own, and count separately."""
    assert parsed([VARCHAR, INT, CHAR, TEXT, ENUM, SET], optional).collations == collations


@pytest.mark.parametrize(("mariadb", "collations"), [(False, (8, 0, 9, 45)), (True, (8, 9, 0, 45))])
def test_geometries_or_vectors_have_a_collation(mariadb: bool, collations: tuple[int, ...]) -> None:  # noqa: FBT001
    """MariaDB counts geometries among the text columns, MySQL 9 vectors."""
    found = parsed([VARCHAR, GEOMETRY, VECTOR, TEXT], field(3, numbers(8, 9, 45)), mariadb=mariadb)
    assert found.collations == collations


def test_names_are_those_of_all_columns() -> None:
    """In UTF-8, of any length."""
    names = ("id", "é" * 64, "v")
    assert parsed([INT, VARCHAR, TEXT], field(4, texts(*names))).names == names


def test_enums_and_sets_have_members() -> None:
    """Fields of their own, each for its columns in order; members are bytes."""
    sets = field(5, b"\x02" + texts("x", "y"))
    enums = field(6, b"\x01" + texts("é") + b"\x03" + texts("a", "", "b" * 300))
    found = parsed([ENUM, INT, SET, ENUM], sets + enums)
    assert found.members == {0: ("é".encode(),), 2: (b"x", b"y"), 3: (b"a", b"", b"b" * 300)}


@pytest.mark.parametrize(
    ("optional", "key"),
    [
        (field(8, numbers(2, 0)), (2, 0)),
        (field(9, numbers(1, 10, 0, 5, 2, 7)), (1, 0, 2)),
        (field(8, numbers(299)), (299,)),
        (b"", ()),
    ],
    ids=["columns", "prefixes", "a wide table", "none"],
)
def test_the_primary_key_is_a_list_of_columns(optional: bytes, key: tuple[int, ...]) -> None:
    """In the key's order; a column of which only a prefix is in the key counts as a whole."""
    assert parsed([INT] * 300, optional).primary_key == key


@pytest.mark.parametrize("optional", [field(8, numbers(3)), field(9, numbers(3, 0)), field(4, texts("a", "b"))])
def test_a_field_of_another_table_is_damage(optional: bytes) -> None:
    """A key of columns that the table does not have, or another number of names."""
    with pytest.raises(CorruptBinlog, match="cannot read a table map"):
        parsed([INT] * 3, optional)


def test_the_last_column_may_be_the_key() -> None:
    """Columns count from 0."""
    assert parsed([INT] * 3, field(8, numbers(2))).primary_key == (2,)


def test_columns_may_be_invisible() -> None:
    """The highest bit is the first column's; without the field it is unknown."""
    found = parsed([INT] * 9, field(12, b"\xbf\x80"))
    assert found.visible == (True, False, *[True] * 7)
    assert parsed([INT] * 9, field(12, b"\xff\x00")).visible == (*[True] * 8, False)
    assert parsed([INT] * 9, field(12, b"\x01\x00")).visible == (*[False] * 7, True, False)


@pytest.mark.parametrize("kind", [0, 7, 13, 14, 200])
def test_other_fields_are_skipped(kind: int) -> None:
    """Types of geometries, dimensions of vectors and fields of newer servers do not change values."""
    columns = [GEOMETRY, VECTOR]
    assert parsed(columns, field(kind, b"\x01"), field(4, texts("a", "b"))) == parsed(
        columns, field(4, texts("a", "b"))
    )


@pytest.mark.parametrize("end", [(0, b"x"), (1, b"x")])
def test_a_name_ends_with_a_nul(end: tuple[int, bytes]) -> None:
    """Schema and table; otherwise the bytes are those of another field."""
    body = bytearray(table_map_body([INT], b""))
    body[8 + 3 * end[0] + 2] = end[1][0]
    event = struct.pack("<IBIIIH", 1, 19, 1, 19 + len(body), 0, 0) + bytes(body)
    for parse in (parse_table_map, table_names):
        with pytest.raises(CorruptBinlog, match="a name is not terminated"):
            parse(event)
