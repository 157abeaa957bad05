"""The generated row decoders compared with the general one, for tables and rows of any shape."""

import struct
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmdelta.binlog.rows import image
from dmdelta.binlog.rows.image import MOST_PATTERNS, ImageDecoder, assemble, table_codec
from dmdelta.binlog.values.column_types import WireColumn, WireType
from dmdelta.model.schema import Column, TableSchema
from tests.support.jsonb_writer import write_jsonb
from tests.support.variant_reader import read_variant

Made = tuple[WireColumn, Column, st.SearchStrategy[bytes]]


def _raw(size: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=size, max_size=size)


def _prefixed(width: int, values: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return values.map(lambda value: len(value).to_bytes(width, "little") + value)


def _number(wire: WireType, name: str, size: int, *, unsigned: bool = False) -> Made:
    return WireColumn(wire), Column("", name, unsigned=unsigned), _raw(size)


TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=60)
LATIN = st.binary(max_size=200)
JSON = st.recursive(
    st.none() | st.integers(-(2**31), 2**31) | TEXT,
    lambda inner: st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=6,
)
KINDS: list[Made] = [
    *(
        _number(wire, name, size, unsigned=unsigned)
        for wire, name, size in (
            (WireType.TINY, "tinyint", 1),
            (WireType.SHORT, "smallint", 2),
            (WireType.INT24, "mediumint", 3),
            (WireType.LONG, "int", 4),
            (WireType.LONGLONG, "bigint", 8),
        )
        for unsigned in (False, True)
    ),
    (
        WireColumn(WireType.DOUBLE, 8),
        Column("", "double"),
        st.floats(allow_nan=False).map(lambda x: struct.pack("<d", x)),
    ),
    (WireColumn(WireType.DATE), Column("", "date"), _raw(3)),
    (WireColumn(WireType.DATETIME2, 0, 6), Column("", "datetime", precision=6), _raw(7).map(lambda x: b"\x99" + x)),
    (WireColumn(WireType.TIMESTAMP2, 0, 3), Column("", "timestamp", precision=3), _raw(6)),
    (WireColumn(WireType.TIME2, 0, 1), Column("", "time", precision=1), _raw(4)),
    (WireColumn(WireType.BIT, 12), Column("", "bit", length=12), _raw(2)),
    (WireColumn(WireType.SET, 1), Column("", "set", members=tuple("abcdefgh")), _raw(1)),
    (WireColumn(WireType.YEAR), Column("", "year"), _raw(1)),
    (
        WireColumn(WireType.VARCHAR, 240),
        Column("", "varchar", length=240, charset="utf8mb4"),
        _prefixed(1, TEXT.map(str.encode)),
    ),
    (WireColumn(WireType.VARCHAR, 255), Column("", "varchar", length=255, charset="latin1"), _prefixed(1, LATIN)),
    (
        WireColumn(WireType.STRING, 900),
        Column("", "char", length=900, charset="utf8mb4"),
        _prefixed(2, TEXT.map(str.encode)),
    ),
    (WireColumn(WireType.STRING, 8), Column("", "binary", length=8), _prefixed(1, st.binary(max_size=8))),
    (WireColumn(WireType.BLOB, 3), Column("", "mediumblob"), _prefixed(3, st.binary(max_size=300))),
    (
        WireColumn(WireType.BLOB, 4),
        Column("", "longtext", charset="utf16"),
        _prefixed(4, TEXT.map(lambda text: text.encode("utf-16-be"))),
    ),
    (WireColumn(WireType.JSON, 4), Column("", "json"), _prefixed(4, JSON.map(write_jsonb))),
    (
        WireColumn(WireType.GEOMETRY, 4),
        Column("", "geometry"),
        _prefixed(4, st.binary(min_size=5, max_size=30)),
    ),
    (WireColumn(WireType.VECTOR, 4), Column("", "vector"), _prefixed(4, st.sampled_from([b"", bytes(8), bytes(4)]))),
]


@st.composite
def _tables(draw: st.DrawFn) -> tuple[list[Made], list[str], tuple[int, ...], list[list[bytes | None]]]:
    """Columns, their names, the columns present in the images, and rows of raw values."""
    columns = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=12))
    names = draw(st.lists(TEXT.filter(bool), min_size=len(columns), max_size=len(columns), unique=True))
    present = draw(st.sets(st.integers(0, len(columns) - 1), min_size=1))
    chosen = tuple(sorted(present))
    row = st.tuples(*(st.none() | columns[number][2] for number in chosen)).map(list)
    return columns, names, chosen, draw(st.lists(row, min_size=1, max_size=6))


def _image(row: list[bytes | None]) -> bytes:
    bits = sum(1 << place for place, value in enumerate(row) if value is None)
    return bits.to_bytes((len(row) + 7) // 8, "little") + b"".join(value for value in row if value is not None)


@settings(max_examples=300)
@given(_tables())
def test_generated_and_general_decoders_agree(made: tuple[list[Made], list[str], tuple[int, ...], list[Any]]) -> None:
    """For any columns, image columns, NULLs and values: both decode to the same objects, of the same size."""
    columns, names, present, rows = made
    wires = [wire for wire, _, _ in columns]
    described = [
        Column(
            name=name,
            type=column.type,
            unsigned=column.unsigned,
            length=column.length,
            precision=column.precision,
            scale=0,
            charset=column.charset,
            members=column.members,
        )
        for name, (_, column, _) in zip(names, columns, strict=True)
    ]
    table = table_codec(TableSchema("s", "t", tuple(described)), wires)
    decoder = ImageDecoder(table, present, keyed=True)
    event = b"head" + b"".join(map(_image, rows))
    at, fast, keys = 4, list[bytes](), list[object]()
    while at < len(event):
        at = decoder.one(event, at, fast, keys)
    run = list[bytes]()
    at = 4
    while at < len(event):
        bitmap = event[at : at + decoder.bitmap_size]
        at = (decoder.runners.get(bitmap) or decoder.runner(bitmap))(event, at, len(event), run, run, keys)
    general, at = list[bytes](), 4
    for _ in rows:
        values, at = decoder.values(event, at)
        general.append(assemble(table, values))
    assert at == len(event)
    assert run == fast
    expected = [read_variant(value, table.keys.metadata) for value in general]
    assert [read_variant(value, table.keys.metadata) for value in fast] == expected
    assert list(map(len, fast)) == list(map(len, general))


def test_null_patterns_beyond_the_limit_use_the_general_decoder() -> None:
    """A table with any number of null patterns has a bounded number of generated decoders."""
    count = 8
    wires = [WireColumn(WireType.LONG)] * count
    columns = tuple(Column(f"c{number}", "int") for number in range(count))
    decoder = ImageDecoder(table_codec(TableSchema("s", "t", columns), wires), tuple(range(count)), keyed=True)
    images = list[bytes]()
    for pattern in range(256):
        row = [None if pattern >> number & 1 else struct.pack("<i", number) for number in range(count)]
        event = _image(row)
        assert decoder.one(event, 0, images, []) == len(event)
    assert len(decoder.runners) == MOST_PATTERNS
    found = [read_variant(value, decoder.table.keys.metadata) for value in images]
    assert found == [
        {f"c{number}": None if pattern >> number & 1 else number for number in range(count)} for pattern in range(256)
    ]


@settings(max_examples=300)
@given(_tables(), st.data())
def test_generated_and_general_decoders_return_equal_keys(
    made: tuple[list[Made], list[str], tuple[int, ...], list[Any]], data: st.DataObject
) -> None:
    """For any key, also if part of it is NULL: a changed NULL pattern of an update is no change of its key."""
    columns, names, present, rows = made
    kinds = [replace(column, name=name) for name, (_, column, _) in zip(names, columns, strict=True)]
    shown = [names[number] for number in present if columns[number][1].type != "json"]
    key = data.draw(st.lists(st.sampled_from(shown), max_size=3, unique=True)) if shown else []
    table = table_codec(TableSchema("s", "t", tuple(kinds), tuple(key)), [wire for wire, _, _ in columns])
    generated, general = (ImageDecoder(table, present, keyed=True) for _ in range(2))
    event = b"".join(map(_image, rows))
    found = list[list[object]]()
    for decoder, most in ((generated, MOST_PATTERNS), (general, 0)):
        at, keys = 0, list[object]()
        with patch.object(image, "MOST_PATTERNS", most):
            while at < len(event):
                at = decoder.one(event, at, [], keys)
        found.append(keys)
    assert not general.runners
    assert found[0] == found[1]


def test_a_key_stays_in_any_null_pattern() -> None:
    """An update whose images have different patterns, more than have a generated decoder."""
    columns = (Column("id", "int"), *(Column(f"c{number}", "int") for number in range(8)))
    table = table_codec(TableSchema("s", "t", columns, ("id",)), [WireColumn(WireType.LONG)] * 9)
    decoder, keys = ImageDecoder(table, tuple(range(9)), keyed=True), list[object]()
    for pattern in range(256):
        event = _image([bytes(4), *(None if pattern >> number & 1 else bytes(4) for number in range(8))])
        decoder.one(event, 0, [], keys)
    assert len(decoder.runners) == MOST_PATTERNS
    assert keys == [0] * 256


@pytest.mark.parametrize("numbers", [0, 1, 49, 50, 51, 52, 300])
@pytest.mark.parametrize("size", [0, 1, 60, 200, 250, 251, 255, 256, 1023, 1024, 65_000, 65_530, 65_531, 65_536])
def test_offsets_have_the_smallest_size_that_holds_them(numbers: int, size: int) -> None:
    """Whether numbers, a text or both together need more: the object has the same size as the general decoder's."""
    columns = (*(Column(f"c{number}", "int") for number in range(numbers)), Column("v", "longtext", charset="utf8mb4"))
    wires = [WireColumn(WireType.LONG)] * numbers + [WireColumn(WireType.BLOB, 4)]
    decoder = ImageDecoder(table_codec(TableSchema("s", "t", columns), wires), tuple(range(numbers + 1)), keyed=False)
    event = _image([*(struct.pack("<i", number) for number in range(numbers)), struct.pack("<I", size) + b"x" * size])
    images = list[bytes]()
    decoder.one(event, 0, images, [])
    values, end = decoder.values(event, 0)
    general = assemble(decoder.table, values)
    assert (len(images[0]), end) == (len(general), len(event))
    found = read_variant(images[0], decoder.table.keys.metadata)
    assert found == {**{f"c{number}": number for number in range(numbers)}, "v": "x" * size}
