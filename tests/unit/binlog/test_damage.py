"""Damaged segments: whichever byte is wrong or missing, the error has file and position."""

import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmdelta.binlog.events.boundary import scan_gtids
from dmdelta.binlog.events.format_description import parse_format_description
from dmdelta.binlog.events.header import EventType
from dmdelta.binlog.rows.decode import decode_segment
from dmdelta.errors import CorruptBinlog, DmdeltaError
from dmdelta.model.segment import Segment
from tests.support.changes import EVERYTHING, Log, names_field, table_map_body
from tests.support.golden import GOLDEN

FILE = GOLDEN / "mysql80" / "binlog.000001"
DATA = FILE.read_bytes()


def segment(size: int, start: int = 4) -> Segment:
    return Segment(str(FILE), "source", 1, FILE.name, start, size)


def decode(data: bytes, end: int | None = None) -> None:
    list(decode_segment(io.BytesIO(data), segment(len(data) if end is None else end), EVERYTHING))


@settings(max_examples=200)
@given(place=st.integers(0, len(DATA) - 1), bit=st.integers(0, 7))
def test_a_flipped_bit_is_found(place: int, bit: int) -> None:
    """Changing any single bit is an error (except the first event's in-use flag, which the server itself changes)."""
    damaged = bytearray(DATA)
    damaged[place] ^= 1 << bit
    if (place, bit) == (4 + 17, 0):
        decode(bytes(damaged))
        return
    with pytest.raises(DmdeltaError) as caught:
        decode(bytes(damaged))
    assert FILE.name in str(caught.value)


@settings(max_examples=60)
@given(size=st.integers(0, len(DATA) - 1))
def test_a_truncated_segment_is_found(size: int) -> None:
    """A file that ends before the segment's end is an error, also at an event boundary."""
    with pytest.raises(CorruptBinlog):
        decode(DATA[:size], len(DATA))
    with pytest.raises(CorruptBinlog):
        scan_gtids(io.BytesIO(DATA[:size]), segment(len(DATA)))


def test_bytes_after_the_end_are_found() -> None:
    """A segment contains nothing after its end."""
    with pytest.raises(CorruptBinlog):
        decode(DATA + DATA[4:], len(DATA))


def test_the_error_has_file_and_position() -> None:
    """The operator learns where the damage is, and what to do."""
    damaged = bytearray(DATA)
    damaged[1500] ^= 0xFF
    with pytest.raises(CorruptBinlog, match="checksum") as caught:
        decode(bytes(damaged))
    assert caught.value.context["binlog_file"] == "binlog.000001"
    assert 4 < caught.value.context["offset"] <= 1500
    assert "relay" in (caught.value.hint or "")


def test_any_other_file_is_refused(tmp_path: Path) -> None:
    """A file without the magic is not a binlog."""
    with pytest.raises(CorruptBinlog, match="not a binlog file"):
        decode(b"PK\x03\x04 something else")


def test_the_first_event_has_server_version_and_checksum_algorithm() -> None:
    """Version, flavor and checksum algorithm come from the format description event."""
    size = int.from_bytes(DATA[13:17], "little")
    description = parse_format_description(DATA[4 : 4 + size])
    assert (description.server_version, description.checksum, description.is_mariadb) == ("8.0.31", True, False)
    other = (GOLDEN / "mariadb" / "binlog.000001").read_bytes()
    size = int.from_bytes(other[13:17], "little")
    assert parse_format_description(other[4 : 4 + size]).is_mariadb


def test_a_truncated_rows_event_without_checksums() -> None:
    """The bytes before its images are missing: a dmdelta error with the table's name."""
    table_map = table_map_body([(3, b"")], names_field(["id"]))
    log = Log(checksum=False).add(EventType.TABLE_MAP, table_map)
    log.add(EventType.WRITE_ROWS, (7).to_bytes(6, "little") + b"\1\0")
    with pytest.raises(CorruptBinlog, match=r"row images of s\.t do not fit its structure"):
        log.changes()
