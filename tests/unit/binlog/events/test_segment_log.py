"""A segment's file as a walk over its events: offsets in the server's file, and how damage is detected."""

import io
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pytest

from dmdelta.binlog.events.boundary import opened_log, scan_gtids, walk_events
from dmdelta.binlog.events.header import EventType
from dmdelta.errors import CorruptBinlog
from dmdelta.model.segment import Segment
from tests.support.changes import Log, query_body

START = 5000
"""Where a later segment begins in the server's file."""
FIRST = len(Log().data)
"""Where the first event after the description begins in a file."""


def a_log(*, checksum: bool = True) -> Log:
    return Log(checksum=checksum).query("BEGIN").add(EventType.ROTATE, b"abc").add(EventType.STOP)


def later(log: Log) -> Segment:
    """The log as a segment that begins later in the server's file."""
    return replace(log.segment(), start=START, end=START + len(log.data) - FIRST)


def mapped(data: bytes, folder: Path) -> BinaryIO:
    (folder / "made.binlog").write_bytes(data)
    return (folder / "made.binlog").open("rb")


def in_memory(data: bytes, _folder: Path) -> BinaryIO:
    return io.BytesIO(data)


def error_of(data: bytes, segment: Segment, walk: Callable = walk_events) -> CorruptBinlog:
    """How walking over the file fails."""
    with pytest.raises(CorruptBinlog) as caught:
        list(walk(io.BytesIO(data), segment))
    return caught.value


@pytest.mark.parametrize("opened", [mapped, in_memory])
@pytest.mark.parametrize("checksum", [True, False])
def test_every_event_has_its_place_in_the_servers_file(
    opened: Callable[[bytes, Path], BinaryIO],
    checksum: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    """From the start of the file or later; only GTID and query events have their body."""
    log, trailer = a_log(checksum=checksum), 4 * checksum
    statement = query_body(b"BEGIN", "s")
    sizes = [19 + len(statement) + trailer, 19 + 3 + trailer, 19 + trailer]
    kinds = [EventType.QUERY, EventType.ROTATE, EventType.STOP]
    for segment, at in ((later(log), START), (log.segment(), FIRST)):
        with opened(log.data, tmp_path) as stream:
            found = [
                (header.event_type, header.offset, header.size, body) for header, body in walk_events(stream, segment)
            ]
        offsets = [at, at + sizes[0], at + sizes[0] + sizes[1]]
        expected = [
            (kind, offset, size, body)
            for kind, offset, size, body in zip(kinds, offsets, sizes, [statement, b"", b""], strict=True)
        ]
        first = [(EventType.FORMAT_DESCRIPTION, 4, FIRST - 4, b"")]
        assert found == (expected if segment.start == START else first + expected)


@pytest.mark.parametrize("walk", [walk_events, scan_gtids])
@pytest.mark.parametrize("start", [b"", b"\xfebi", b"\xfebim", b"\xffbin", b"bin\xfe"])
def test_a_file_without_the_magic_bytes_is_no_binlog(start: bytes, walk: Callable) -> None:
    """An empty file is none, either."""
    log = a_log()
    data = start + log.data[4:] if len(start) == 4 else start
    assert "made.binlog is not a binlog file" in str(error_of(data, log.segment(), walk))


@pytest.mark.parametrize("size", [4, 5, 22, 23, 24, FIRST - 1])
@pytest.mark.parametrize("start", [4, START])
def test_a_file_that_ends_in_its_first_event_is_damaged(size: int, start: int) -> None:
    """The error is at the segment's start, whatever the segment expects."""
    segment = replace(a_log().segment(), start=start, end=start + size - 4)
    error = error_of(a_log().data[:size], segment)
    assert "made.binlog is truncated or damaged" in str(error)
    assert error.context["binlog_file"] == "binlog.000007"
    assert start <= error.context["offset"] <= start + size - 4


@pytest.mark.parametrize("more", [-30, -1, 1, 1000])
def test_a_file_of_another_size_than_its_segment_is_damaged(more: int) -> None:
    """The error is where the file ends."""
    log = a_log()
    ends = [(log.segment(), len(log.data)), (later(log), START + len(log.data) - FIRST)]
    for segment, end in ends:
        error = error_of(log.data, replace(segment, end=segment.end + more))
        assert error.context == {"binlog_file": "binlog.000007", "offset": end}


@pytest.mark.parametrize("more", [1, 12, 13, 18, 19, 22])
def test_bytes_that_are_no_whole_event_are_damage(more: int) -> None:
    """The error is where they begin."""
    log = a_log()
    at = len(log.data)
    log.data += struct.pack("<IBIIIH", 1, EventType.STOP, 1, 23, 0, 0)[:more].ljust(more, b"\0")
    assert error_of(log.data, log.segment()).context["offset"] == at
    assert error_of(log.data, later(log)).context["offset"] == START + at - FIRST


@pytest.mark.parametrize(("size", "valid"), [(0, False), (22, False), (23, True), (24, False), (2**32 - 1, False)])
def test_an_event_has_at_least_a_header_and_a_checksum(size: int, valid: bool) -> None:  # noqa: FBT001
    """It ends in the segment."""
    log = Log().query("BEGIN")
    at = len(log.data)
    log.data += struct.pack("<IBIIIH", 1, EventType.STOP, 1, size, 0, 0) + bytes(4)
    if valid:
        assert [header.offset for header, _ in walk_events(io.BytesIO(log.data), log.segment())] == [4, FIRST, at]
    else:
        assert error_of(log.data, log.segment()).context["offset"] == at
        assert error_of(log.data, later(log)).context["offset"] == START + at - FIRST


def test_a_segment_may_have_no_event() -> None:
    """A later segment of a file repeats its first event, and may end there."""
    log = Log()
    with opened_log(io.BytesIO(log.data), later(log)) as opened:
        assert (opened.first, opened.end, opened.shift, opened.trailer) == (FIRST, FIRST, START - FIRST, 4)
    assert list(walk_events(io.BytesIO(log.data), later(log))) == []
