"""Structures of table maps: described by the table map, or a known one whose columns all agree with it."""

from dataclasses import replace
from typing import Any

import pytest

from dmdelta.binlog.rows.schema_resolution import describe, find_known, fitted
from dmdelta.binlog.rows.table_map import TableMap
from dmdelta.binlog.values.column_types import WireColumn, WireType
from dmdelta.errors import CorruptBinlog
from dmdelta.model.schema import Column, TableSchema

W = WireType
UTF8MB4, LATIN1, BINARY, UTF8MB3 = 45, 8, 63, 33


def mapped(*wires: WireColumn, **fields: Any) -> TableMap:
    """A table map of these columns, all nullable and without collations unless given."""
    nullable, collations = (True,) * len(wires), (0,) * len(wires)
    return TableMap("s", "t", wires, **{"nullable": nullable, "collations": collations, **fields})


def known(*columns: Column) -> TableSchema:
    return TableSchema("s", "t", columns, ("c",))


DESCRIBED = [
    (WireColumn(W.LONG), {"unsigned": (True,)}, Column("c", "int", unsigned=True)),
    (WireColumn(W.LONG), {"unsigned": (False,), "nullable": (False,)}, Column("c", "int", nullable=False)),
    (WireColumn(W.LONG), {"visible": (False,)}, Column("c", "int", visible=False)),
    (WireColumn(W.LONG), {"visible": (True,)}, Column("c", "int")),
    (WireColumn(W.YEAR), {"unsigned": (True,)}, Column("c", "year")),
    (WireColumn(W.NEWDECIMAL, 0, 10, 2), {}, Column("c", "decimal", precision=10, scale=2)),
    (WireColumn(W.DATETIME2, 0, 3), {}, Column("c", "datetime", precision=3)),
    (WireColumn(W.BIT, 12), {}, Column("c", "bit", length=12)),
    (WireColumn(W.JSON, 4), {}, Column("c", "json")),
    (
        WireColumn(W.VARCHAR, 80),
        {"collations": (UTF8MB4,)},
        Column("c", "varchar", length=80, charset="utf8mb4", collation="utf8mb4_general_ci"),
    ),
    (
        WireColumn(W.BLOB, 2),
        {"collations": (LATIN1,)},
        Column("c", "text", charset="latin1", collation="latin1_swedish_ci"),
    ),
    (WireColumn(W.BLOB, 2), {"collations": (BINARY,)}, Column("c", "blob")),
    (WireColumn(W.VARCHAR, 80), {"collations": (BINARY,)}, Column("c", "varbinary", length=80)),
    (WireColumn(W.STRING, 4), {"collations": (BINARY,)}, Column("c", "binary", length=4)),
    (
        WireColumn(W.ENUM, 1),
        {"collations": (LATIN1,), "members": {0: (b"a", b"\xe9")}},
        Column("c", "enum", charset="latin1", members=("a", "é"), collation="latin1_swedish_ci"),
    ),
    (WireColumn(W.SET, 1), {"members": {0: (b"a", "é".encode())}}, Column("c", "set", members=("a", "é"))),
    (
        WireColumn(W.ENUM, 1),
        {"collations": (BINARY,), "members": {0: (b"a", "é".encode())}},
        Column("c", "enum", members=("a", "é")),
    ),
]


@pytest.mark.parametrize(("wire", "fields", "column"), DESCRIBED)
def test_a_table_map_with_names_describes_its_columns(wire: WireColumn, fields: dict[str, Any], column: Column) -> None:
    """Type, sign, length, precision, character set and collation, members, nullability and visibility."""
    assert describe(mapped(wire, names=("c",), **fields)) == TableSchema("s", "t", (column,))


def test_the_key_has_the_names_of_its_columns() -> None:
    """In the key's order; without names there is no structure."""
    table_map = mapped(*[WireColumn(W.LONG)] * 3, names=("a", "b", "c"), primary_key=(2, 0))
    described = describe(table_map)
    assert described is not None
    assert described.primary_key == ("c", "a")
    assert describe(replace(table_map, names=())) is None


def test_members_that_are_not_text_are_damage() -> None:
    """The error has the column."""
    table_map = mapped(WireColumn(W.ENUM, 1), names=("c",), collations=(UTF8MB4,), members={0: (b"\xff",)})
    with pytest.raises(CorruptBinlog, match=r"s\.t\.c has members that are not valid utf8mb4"):
        describe(table_map)


def enum(count: int) -> dict[str, Any]:
    return {"type": "enum", "members": tuple(map(str, range(count)))}


TEXT = {"type": "varchar", "charset": "utf8mb4"}
AGREE = [
    *((W.TINY, 0, {"type": "tinyint"}, {"type": kind}) for kind in ("smallint", "year", "enum")),
    *((W.VARCHAR, 80, {**TEXT, "length": 80}, {**TEXT, "length": length}) for length in (79, 81)),
    (W.VARCHAR, 80, {**TEXT, "length": 80}, {"type": "char", "length": 80, "charset": "utf8mb4"}),
    (W.VARCHAR, 80, {"type": "varbinary", "length": 80, "charset": "binary"}, {"type": "varbinary", "length": 81}),
    (W.STRING, 4, {"type": "binary", "length": 4}, {"type": "binary", "length": 5}),
    *((W.BIT, 9, {"type": "bit", "length": 9}, {"type": "bit", "length": length}) for length in (8, 10)),
    *((W.BLOB, 2, {"type": "blob"}, {"type": kind}) for kind in ("tinyblob", "longblob", "text")),
    *((W.ENUM, 1, enum(255), enum(count)) for count in (256, 300)),
    *((W.ENUM, 2, enum(256), enum(count)) for count in (1, 255)),
    (W.GEOMETRY, 4, {"type": "point"}, {"type": "json"}),
    (W.GEOMETRY, 4, {"type": "geometry"}, {"type": "blob"}),
    (W.GEOMETRY, 4, {"type": "geomcollection"}, {"type": "geometrycollections"}),
]


@pytest.mark.parametrize(("kind", "length", "fits", "differs"), AGREE)
def test_a_known_structure_needs_the_types_of_the_table_map(
    kind: WireType, length: int, fits: dict[str, Any], differs: dict[str, Any]
) -> None:
    """By name and length; of an ENUM the number of members has to fit its size."""
    table_map = mapped(WireColumn(kind, length))
    found = known(Column("c", **fits))
    assert find_known(table_map, [found]) is found
    assert find_known(table_map, [known(Column("c", **differs))]) is None


SETS = [(1, 1), (8, 1), (9, 2), (16, 2), (17, 3), (24, 3), (25, 4), (32, 4), (33, 8), (40, 8), (41, 8), (64, 8)]


@pytest.mark.parametrize(("members", "size"), SETS)
def test_a_set_has_the_bytes_that_its_members_need(members: int, size: int) -> None:
    """A bit for each, and eight bytes for more than 32."""
    found = known(Column("c", "set", members=tuple(map(str, range(members)))))
    matching = [length for length in range(1, 9) if find_known(mapped(WireColumn(W.SET, length)), [found])]
    assert matching == [size]


@pytest.mark.parametrize("kind", [W.TIME2, W.DATETIME2, W.TIMESTAMP2])
@pytest.mark.parametrize("precision", [0, 3, 6])
def test_a_time_has_the_same_fraction(kind: WireType, precision: int) -> None:
    """Neither fewer digits nor more."""
    name = {W.TIME2: "time", W.DATETIME2: "datetime", W.TIMESTAMP2: "timestamp"}[kind]
    structures = [known(Column("c", name, precision=digits)) for digits in range(7)]
    found = [one for one in structures if find_known(mapped(WireColumn(kind, 0, precision)), [one])]
    assert found == [structures[precision]]


@pytest.mark.parametrize(("precision", "scale"), [(9, 2), (11, 2), (10, 1), (10, 3), (2, 10)])
def test_a_decimal_has_the_same_digits(precision: int, scale: int) -> None:
    """Before and after the point."""
    table_map = mapped(WireColumn(W.NEWDECIMAL, 0, 10, 2))
    assert find_known(table_map, [known(Column("c", "decimal", precision=precision, scale=scale))]) is None
    assert find_known(table_map, [known(Column("c", "decimal", precision=10, scale=2))])


CHARSETS = ("ascii", "latin1", "utf8mb3", "utf8mb4")


@pytest.mark.parametrize("wire", [WireColumn(W.BLOB, 2), WireColumn(W.ENUM, 1), WireColumn(W.VARCHAR, 80)])
@pytest.mark.parametrize("logged", [(11, "ascii"), (LATIN1, "latin1"), (UTF8MB3, "utf8mb3"), (UTF8MB4, "utf8mb4")])
def test_a_text_has_the_same_character_set(wire: WireColumn, logged: tuple[int, str]) -> None:
    """If the table map has it; any collation of it will do."""
    fields = {"length": 80} if wire.type == W.VARCHAR else {}
    name = wire.type_name(binary=False)
    structures = [known(Column("c", name, charset=charset, members=("a",), **fields)) for charset in CHARSETS]
    table_map = mapped(wire, collations=(logged[0],))
    assert [charset for charset, one in zip(CHARSETS, structures, strict=True) if find_known(table_map, [one])] == [
        logged[1]
    ]
    assert all(find_known(mapped(wire), [one]) for one in structures)


def test_old_servers_call_utf8mb3_utf8() -> None:
    """Both are the same character set; a binary has none."""
    table_map = mapped(WireColumn(W.BLOB, 2), collations=(UTF8MB3,))
    assert find_known(table_map, [known(Column("c", "text", charset="utf8"))])
    assert find_known(mapped(WireColumn(W.BLOB, 2), collations=(BINARY,)), [known(Column("c", "blob"))])


@pytest.mark.parametrize(("unsigned", "wanted"), [(None, [True, False]), ((True,), [True]), ((False,), [False])])
def test_a_number_has_the_same_sign(unsigned: tuple[bool, ...] | None, wanted: list[bool]) -> None:
    """If the table map has signs; a YEAR has none."""
    table_map = mapped(WireColumn(W.LONG), unsigned=unsigned)
    assert [
        sign for sign in (True, False) if find_known(table_map, [known(Column("c", "int", unsigned=sign))])
    ] == wanted
    assert find_known(mapped(WireColumn(W.YEAR), unsigned=(True,)), [known(Column("c", "year"))])
    decimals = [known(Column("c", "decimal", precision=5, unsigned=sign)) for sign in (True, False)]
    found = [one for one in decimals if find_known(mapped(WireColumn(W.NEWDECIMAL, 0, 5), unsigned=unsigned), [one])]
    assert found == [one for one in decimals if one.columns[0].unsigned in wanted]


INT = Column("c", "int")


@pytest.mark.parametrize(("columns", "fits"), [(1, False), (2, True), (3, False)])
def test_a_structure_has_as_many_columns(columns: int, fits: bool) -> None:  # noqa: FBT001
    """Neither fewer nor more, although the first ones agree; one derived from statements as well."""
    table_map = mapped(*[WireColumn(W.LONG)] * 2)
    structure = known(*[INT] * columns)
    assert (find_known(table_map, [structure]) is structure) == fits
    assert fitted(table_map, structure) == (structure if fits else None)


def test_every_column_has_to_agree() -> None:
    """Also the last one."""
    table_map = mapped(WireColumn(W.LONG), WireColumn(W.LONG))
    for columns in ((INT, Column("d", "bigint")), (Column("d", "bigint"), INT)):
        assert find_known(table_map, [known(*columns)]) is None
        assert fitted(table_map, known(*columns)) is None


def test_the_newest_structure_that_agrees_is_used() -> None:
    """Older ones come first in the list."""
    older, newer, other = known(INT), known(Column("d", "int")), known(Column("c", "bigint"))
    assert find_known(mapped(WireColumn(W.LONG)), [older, newer, other]) is newer
    assert find_known(mapped(WireColumn(W.LONG)), []) is None


COMPLETED = [
    (W.BLOB, 3, UTF8MB4, {"type": "text", "charset": "utf8mb4"}, {"type": "mediumtext"}),
    (W.BLOB, 4, BINARY, {"type": "blob"}, {"type": "longblob"}),
    (W.VARCHAR, 80, LATIN1, {"type": "varchar", "length": 20}, {"length": 80, "charset": "latin1"}),
    (W.STRING, 80, UTF8MB4, {"type": "char", "length": 80, "charset": "utf8mb4"}, {}),
    (W.ENUM, 1, LATIN1, {"type": "enum", "members": ("a",)}, {"charset": "latin1"}),
    (W.VARCHAR, 12, BINARY, {"type": "binary", "length": 12}, {"type": "varbinary"}),
    (W.BLOB, 2, 255, {"type": "text"}, {"charset": "utf8mb4"}),
]


@pytest.mark.parametrize(("kind", "length", "collation", "column", "changed"), COMPLETED)
def test_the_table_map_completes_a_structure_of_statements(
    kind: WireType, length: int, collation: int, column: dict[str, Any], changed: dict[str, Any]
) -> None:
    """Sizes of TEXT and BLOB, character sets, and the collation that the server chose; MariaDB's VECTOR as bytes."""
    names = {UTF8MB4: "utf8mb4_general_ci", LATIN1: "latin1_swedish_ci", BINARY: None, 255: "utf8mb4_0900_ai_ci"}
    table_map = mapped(WireColumn(kind, length), collations=(collation,), nullable=(False,))
    expected = replace(Column("c", **column), **changed, nullable=False, collation=names[collation])
    assert fitted(table_map, known(Column("c", **column))) == known(expected)


def test_a_text_is_not_completed_to_a_binary() -> None:
    """Nor is a collation that the table map does not have."""
    text = Column("c", "text", charset="latin1", collation="latin1_bin")
    assert fitted(mapped(WireColumn(W.BLOB, 2)), known(text)) == known(text)
    assert fitted(mapped(WireColumn(W.BLOB, 2), collations=(BINARY,)), known(text)) is None
    assert fitted(mapped(WireColumn(W.BLOB, 2), collations=(UTF8MB4,)), known(text)) is None
