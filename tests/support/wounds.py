"""Binlogs with damage that no checksum detects: events are changed, then resealed with the right size and CRC.

Also inside compressed transactions, whose inner events have no checksums.
"""

import io
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import Enum
from functools import cache
from typing import NamedTuple

import zstandard

from dmdelta.binlog.events.boundary import scan_gtids
from dmdelta.binlog.events.header import CHECKSUM_SIZE, HEADER_SIZE, EventType
from dmdelta.binlog.events.payload import inner_events
from dmdelta.binlog.rows.ddl_scan import scan_statements, scan_tables
from dmdelta.binlog.rows.decode import decode_segment
from dmdelta.binlog.rows.decode_options import DecodeOptions
from dmdelta.errors import DmdeltaError
from dmdelta.model.segment import FIRST_OFFSET, MAGIC, Segment
from tests.support.changes import changes_of, payload_body
from tests.support.golden import SERVERS, boundaries, cut_at, recording
from tests.support.replay import Change


class Seed(NamedTuple):
    """A transaction of a recorded binlog as a separate segment, and how its tables are decoded."""

    data: bytes
    segment: Segment
    options: DecodeOptions


class Act(Enum):
    """The kinds of damage."""

    FLIP = "flip"
    """Flip one bit: `data`'s first byte, modulo 8, selects it."""
    WRITE = "write"
    """Overwrite bytes with `data`."""
    INSERT = "insert"
    REMOVE = "remove"
    """Remove as many bytes as `data` has."""
    CUT = "cut"
    """Truncate the event."""
    KIND = "kind"
    """Change the event's type to `data`'s first byte."""
    DROP = "drop"
    REPEAT = "repeat"
    """Duplicate the event."""


class Wound(NamedTuple):
    """One change of one event; `event` and `place` (in its body) are taken modulo the number of events and the size."""

    event: int
    act: Act
    place: int
    data: bytes


@cache
def seeds() -> tuple[Seed, ...]:
    """The transactions of the recorded binlogs, smallest first."""
    return tuple(sorted(_seeds(), key=lambda seed: len(seed.data)))


def _seeds() -> Iterator[Seed]:
    for name in SERVERS:
        recorded = recording(name)
        for whole in recorded.segments():
            with open(whole.path, "rb") as stream:
                data = stream.read()
            for segment, piece in cut_at(data, whole, boundaries(data, whole)):
                if segment.start > FIRST_OFFSET:
                    yield Seed(piece, segment, recorded.options(wanted=lambda *_: True))


def wounded(seed: Seed, wounds: Sequence[Wound]) -> Seed:
    """The seed with its events damaged, including its format description, and each one resealed."""
    # The first event always has a checksum; the byte before it states whether the others have one.
    begin = FIRST_OFFSET + int.from_bytes(seed.data[FIRST_OFFSET + 9 : FIRST_OFFSET + 13], "little")
    description = seed.data[FIRST_OFFSET : begin - CHECKSUM_SIZE]
    checked = description[-1] == 1
    events = [description, *_split(seed.data[begin:], CHECKSUM_SIZE * checked)]
    first, *rest = _changed(events, wounds) or [b""]
    data = MAGIC + _sealed(first, checked=True) + b"".join(_sealed(event, checked=checked) for event in rest)
    size = sum(len(event) + CHECKSUM_SIZE * checked for event in rest)
    segment = replace(seed.segment, end=seed.segment.start + size)
    return Seed(data, segment, seed.options)


def _split(data: bytes, trailer: int) -> Iterator[bytes]:
    """The events without their checksums."""
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at + 9 : at + 13], "little")
        yield data[at : at + size - trailer]
        at += size


def _sealed(event: bytes, *, checked: bool) -> bytes:
    whole = event[:9] + struct.pack("<I", len(event) + CHECKSUM_SIZE * checked) + event[13:]
    return whole + struct.pack("<I", zlib.crc32(whole)) * checked


def _changed(events: list[bytes], wounds: Sequence[Wound]) -> list[bytes]:
    for wound in wounds:
        if not events:
            break
        number = wound.event % len(events)
        event = events[number]
        if event[4] == EventType.TRANSACTION_PAYLOAD and wound.place & 1:
            events[number] = event[:HEADER_SIZE] + _payload_changed(event, wound)
        else:
            events[number : number + 1] = _hit(event, wound)
    return events


def _payload_changed(event: bytes, wound: Wound) -> bytes:
    """A compressed transaction with one of its inner events damaged."""
    try:
        inner = list(inner_events(io.BytesIO(event[HEADER_SIZE:])))
    except (DmdeltaError, zstandard.ZstdError):
        return event[HEADER_SIZE:]
    deeper = wound._replace(event=wound.event // 2, place=wound.place >> 1)
    return payload_body(b"".join(_sealed(one, checked=False) for one in _changed(inner, [deeper])))


def _hit(event: bytes, wound: Wound) -> list[bytes]:
    """The events that replace the event."""
    act, data = wound.act, wound.data or b"\0"
    if act is Act.DROP:
        return []
    if act is Act.REPEAT:
        return [event, event]
    if act is Act.KIND:
        return [event[:4] + data[:1] + event[5:]]
    at = HEADER_SIZE + wound.place % (len(event) - HEADER_SIZE + 1)
    head, tail = event[:at], event[at:]
    if act is Act.FLIP:
        return [head + bytes(byte ^ 1 << (data[0] & 7) for byte in tail[:1]) + tail[1:]]
    if act is Act.WRITE:
        return [head + data[: len(tail)] + tail[len(data) :]]
    if act is Act.INSERT:
        return [head + data + tail]
    return [head + tail[len(data) :] if act is Act.REMOVE else head]


def read_every_way(seed: Seed) -> list[Change]:
    """The changes of a segment by the tests' strict reader, after all other scans of segments have read it.

    Raises:
        DmdeltaError: the codec detects the damage.
    """
    data, segment, options = seed
    scans = (scan_gtids, scan_statements, scan_tables)
    for scan in scans:
        try:
            scan(io.BytesIO(data), segment)
        except DmdeltaError:
            continue  # the decoder must detect it independently
    return [change for batch in decode_segment(io.BytesIO(data), segment, options) for change in changes_of(batch)]
