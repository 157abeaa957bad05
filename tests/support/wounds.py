"""Binlogs that are damaged where no checksum tells: events are changed, then sealed again with the right size and CRC.

Also inside compressed transactions, whose events have no checksums of their own.
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
    """A transaction of a recorded binlog as a segment of its own, and how its tables are decoded."""

    data: bytes
    segment: Segment
    options: DecodeOptions


class Act(Enum):
    """What a wound does."""

    FLIP = "flip"
    """One bit: `data`'s first byte, modulo 8, says which."""
    WRITE = "write"
    """`data` over what is there."""
    INSERT = "insert"
    REMOVE = "remove"
    """As many bytes as `data` has."""
    CUT = "cut"
    """The event ends there."""
    KIND = "kind"
    """The event becomes one of another type: `data`'s first byte."""
    DROP = "drop"
    REPEAT = "repeat"
    """The event comes twice."""


class Wound(NamedTuple):
    """One change of one event; `event` and `place` (in its body) count modulo what is there."""

    event: int
    act: Act
    place: int
    data: bytes


@cache
def seeds() -> tuple[Seed, ...]:
    """The transactions of the recorded binlogs, the small ones first."""
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
    """The seed with its events damaged, its format description too, and every one sealed again."""
    # The first event has a checksum in any case; the byte before it tells whether the others have.
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
    """A compressed transaction with one of its own events wounded."""
    try:
        inner = list(inner_events(io.BytesIO(event[HEADER_SIZE:])))
    except (DmdeltaError, zstandard.ZstdError):
        return event[HEADER_SIZE:]
    deeper = wound._replace(event=wound.event // 2, place=wound.place >> 1)
    return payload_body(b"".join(_sealed(one, checked=False) for one in _changed(inner, [deeper])))


def _hit(event: bytes, wound: Wound) -> list[bytes]:
    """What comes in the place of the event."""
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
    """The changes of a segment by the tests' strict reader, after everything else that reads segments has seen it.

    Raises:
        DmdeltaError: what the codec says of the damage.
    """
    data, segment, options = seed
    scans = (scan_gtids, scan_statements, scan_tables)
    for scan in scans:
        try:
            scan(io.BytesIO(data), segment)
        except DmdeltaError:
            continue  # the decoder has to judge for itself
    return [change for batch in decode_segment(io.BytesIO(data), segment, options) for change in changes_of(batch)]
