"""Row images one by one: their form in the log and in result sets, and the limit of their size."""

import io
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import pytest

from dmdelta.binlog.events.header import EventType
from dmdelta.binlog.rows import mapped_tables, rows
from dmdelta.binlog.rows.decode import decode_segment
from dmdelta.binlog.rows.image import LOGGED, MOST_PATTERNS, ImageDecoder, RowForm, assemble, check_sizes, table_codec
from dmdelta.binlog.values import variant
from dmdelta.binlog.values.column_types import WireColumn, WireType
from dmdelta.errors import CorruptBinlog, UnsupportedEvent
from dmdelta.model.schema import Column, TableSchema
from tests.support.changes import EVERYTHING, Log, names_field, rows_body, rows_of
from tests.support.variant_reader import read_variant

COLUMNS = (Column("b", "int"), Column("a", "varchar", length=80, charset="utf8mb4"), Column("c", "json"))
SCHEMA = TableSchema("s", "t", COLUMNS, ("a", "b"))
WIRES = [WireColumn(WireType.LONG), WireColumn(WireType.VARCHAR, 80), WireColumn(WireType.JSON, 4)]
RESULT = RowForm(lead=5, spare=2)


def decoder(form: RowForm = LOGGED, *, keyed: bool = False) -> ImageDecoder:
    return ImageDecoder(table_codec(SCHEMA, WIRES), (0, 1, 2), keyed=keyed, form=form)


def image(form: RowForm, *, document: bool = False, text: bytes | None = b"xy") -> bytes:
    """An image of 7 and a text; a document is the number 9."""
    bits = (text is None) << 1 | (not document) << 2
    value = b"" if text is None else bytes((len(text),)) + text
    tail = struct.pack("<I", 3) + b"\x05\x09\x00" if document else b""
    return bytes(form.lead) + bytes((bits << form.spare,)) + struct.pack("<i", 7) + value + tail


@pytest.mark.parametrize("form", [LOGGED, RESULT], ids=["in the log", "in a result set"])
@pytest.mark.parametrize(
    ("content", "value", "raws"),
    [
        ({}, {"a": "xy", "b": 7}, {0: b"\x07\0\0\0", 1: b"xy", 2: None}),
        ({"text": None}, {"a": None, "b": 7}, {0: b"\x07\0\0\0", 1: None, 2: None}),
        ({"document": True}, {"a": "xy", "b": 7, "c": 9}, {0: b"\x07\0\0\0", 1: b"xy", 2: b"\x05\x09\0"}),
    ],
    ids=["no document", "nulls", "a document"],
)
def test_an_image_is_decoded_where_it_is(form: RowForm, content: dict, value: dict, raws: dict) -> None:
    """By generated code and by the general decoder; a missing document has no field."""
    event = b"before" + image(form, **content) + b"after"
    end, found = len(event) - 5, decoder(form)
    images: list[bytes] = []
    assert found.one(event, 6, images, []) == end
    values, after = found.values(event, 6)
    for one in (*images, assemble(found.table, values)):
        assert read_variant(one, found.table.keys.metadata) == value
    assert (after, found.raws(event, 6)) == (end, (raws, end))


@pytest.mark.parametrize(
    ("content", "key"), [({}, [(b"xy", 7)]), ({"document": True}, [(b"xy", 7)]), ({"text": None}, [])]
)
def test_the_key_of_an_image_is_returned_on_demand(content: dict, key: list[tuple]) -> None:
    """In the key's order, as logged; an image without a part of it has none."""
    event, keys = image(LOGGED, **content), list[object]()
    decoder(keyed=True).one(event, 0, [], keys)
    assert keys == key
    decoder().one(event, 0, [], keys)
    assert keys == key


@pytest.mark.parametrize("form", [LOGGED, RESULT])
def test_an_image_longer_than_its_event_is_damage(form: RowForm) -> None:
    """The table is in the error."""
    event, found = image(form), decoder(form)
    assert found.raws(event, 0)[1] == len(event)
    with pytest.raises(CorruptBinlog, match=r"row images of s\.t do not fit"):
        found.raws(event[:-1], 0)
    with pytest.raises(CorruptBinlog, match=r"row images of s\.t do not fit"):
        found.one(event[: form.lead], 0, [], [])


def test_decoders_are_generated_for_a_limited_number_of_null_patterns() -> None:
    """Exactly that many; one that exists is used again."""
    columns = tuple(Column(f"c{number}", "tinyint") for number in range(7))
    table = table_codec(TableSchema("s", "t", columns), [WireColumn(WireType.TINY)] * 7)
    found = ImageDecoder(table, tuple(range(7)), keyed=False)
    runners = [found.runner(bytes((bits,))) for bits in range(MOST_PATTERNS)]
    assert list(found.runners.values()) == runners
    assert found.runner(bytes((MOST_PATTERNS,))) == found.runner(bytes((MOST_PATTERNS + 1,)))
    assert len(found.runners) == MOST_PATTERNS == len(set(runners))


@pytest.mark.parametrize("sizes", [[], [0], [1000], [999, 1000]])
def test_images_up_to_the_limit_are_accepted(sizes: list[int]) -> None:
    """The largest one counts."""
    with patch.object(variant, "SIZE_LIMIT", 1000):
        check_sizes(SCHEMA, map(bytes, sizes))
        with pytest.raises(UnsupportedEvent, match=r"a row of s\.t has 1001 bytes, more than .* 1000"):
            check_sizes(SCHEMA, map(bytes, [*sizes, 1001, 5]))


LARGE = 400
"""Bytes of an event above which its images are examined in these tests; the limit of an image is 200."""


def texts(*sizes: int, kind: int = EventType.WRITE_ROWS) -> tuple[int, bytes]:
    images = b"".join(b"\0" + struct.pack("<H", size) + b"x" * size for size in sizes)
    return kind, rows_body(images, 1, bitmaps=1 + (kind == EventType.UPDATE_ROWS))


@contextmanager
def limited() -> Iterator[None]:
    """With these two limits, also for a structure that another test has decoded with the real ones."""
    with (
        patch.object(mapped_tables, "_shared_state", mapped_tables._shared_state.__wrapped__),
        patch.object(rows, "LARGE", LARGE),
        patch.object(variant, "SIZE_LIMIT", 200),
    ):
        yield


def decoded(*events: tuple[int, bytes]) -> int:
    """The number of rows of a table with one long text."""
    log = Log().transaction([(252, b"\x02")], names_field(("v",)), *events)
    with limited():
        return len([change for change in log.changes() if change.seq and change.row >= 0])


@pytest.mark.parametrize("kind", [EventType.WRITE_ROWS, EventType.DELETE_ROWS, EventType.UPDATE_ROWS])
@pytest.mark.parametrize("sizes", [(300, 90, 90, 90), (90, 90, 90, 300), (90, 300, 90, 90)])
def test_a_row_beyond_the_limit_stops_the_task(kind: EventType, sizes: tuple[int, ...]) -> None:
    """Any row of a large event, before or after image, also after other events."""
    small = texts(10, 10, kind=kind)
    with pytest.raises(UnsupportedEvent, match=r"a row of s\.t has 3\d\d bytes, more than a VARIANT's limit of 200"):
        decoded(small, texts(*sizes, kind=kind))
    assert decoded(small, texts(*[170] * 4, kind=kind)) == (6 if kind != EventType.UPDATE_ROWS else 3)


def test_events_that_are_not_large_are_not_examined() -> None:
    """Their images cannot reach the real limit."""
    header = 19 + len(texts(0)[1])
    assert decoded(texts(LARGE - header)) == 1
    with pytest.raises(UnsupportedEvent, match="limit"):
        decoded(texts(LARGE - header + 1))


def compressed(data: bytes) -> bytes:
    """As MariaDB compresses the images of an event, and a value."""
    return b"\x82" + struct.pack(">H", len(data)) + zlib.compress(data)


def compressed_event(*sizes: int) -> tuple[int, bytes]:
    body = rows_body(b"", 1)
    return EventType.MARIADB_WRITE_ROWS_COMPRESSED, body + compressed(texts(*sizes)[1][len(body) :])


def compressed_values(*sizes: int) -> tuple[int, bytes]:
    values = [compressed(b"x" * size) for size in sizes]
    images = [b"\0" + struct.pack("<H", len(value)) + value for value in values]
    return EventType.WRITE_ROWS, rows_body(b"".join(images), 1)


COMPRESSED = {"event": (compressed_event, (252, b"\x02")), "values": (compressed_values, (140, b"\x02"))}


def compressed_log(form: str, *sizes: int) -> Log:
    make, column = COMPRESSED[form]
    return Log("10.11.6-MariaDB").transaction([column], names_field(("v",)), make(*sizes))


@pytest.mark.parametrize("form", COMPRESSED)
def test_a_row_that_exceeds_the_limit_when_decompressed_stops_the_task(form: str) -> None:
    """The limit applies to what bronze stores, not to the bytes of the log."""
    with limited():
        assert len(rows_of(compressed_log(form, 170, 170, 170).changes())) == 3
        with pytest.raises(
            UnsupportedEvent, match=r"a row of s\.t has 5\d\d bytes, more than a VARIANT's limit of 200"
        ):
            compressed_log(form, 170, 500, 170).changes()


@pytest.mark.parametrize("form", COMPRESSED)
def test_a_batch_is_as_large_as_its_rows_when_decompressed(form: str) -> None:
    """A batch ends by the size of what it holds, not by the bytes of the log."""
    make, column = COMPRESSED[form]
    log = Log("10.11.6-MariaDB").transaction([column], names_field(("v",)), *[make(1000, 1000)] * 4)
    options = replace(EVERYTHING, batch_bytes=3000)
    batches = list(decode_segment(io.BytesIO(log.data), log.segment(), options))
    assert [sum(map(bool, batch.after)) for batch in batches] == [4, 4]
    assert all(4000 <= batch.size < 5000 for batch in batches)
