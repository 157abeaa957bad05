"""Skips from one MySQL transaction to the next, without reading the events in between.

Since 8.0.2 a GTID event contains its transaction's length in the file (bytes, including itself). A length is trusted
only if it leads to a GTID event with the next sequence number of the file, and the transaction before it ends in its
XID event or is one compressed payload. Everything else (a statement with implicit commit, XA, the last transaction of a
segment, logs of other servers) must be walked.

Format: mysql/binlog/event/control_events.h (`Gtid_event`); the length is in the protocol's variable-length form.
"""

from mmap import mmap
from struct import Struct

from dmdelta.binlog.events.gtid import read_tagged, uuid_text
from dmdelta.binlog.events.header import HEADER_SIZE, EventType
from dmdelta.model.gtid import GtidRun, extend

MYSQL_GTIDS = frozenset({EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED})

_GTID, _TAGGED = int(EventType.GTID), int(EventType.GTID_TAGGED)
_UNTAGGED = (_GTID, int(EventType.ANONYMOUS_GTID))
_EVENT = Struct("<4xB4xI7x16sqB8xq6xBBI").unpack_from
"""Of a GTID event: type, size, uuid, gno, clock's type, sequence number, the commit time's highest byte, and the
length's first byte and next four."""
_LENGTH = Struct("<BI").unpack_from
_LENGTH_AT = 68
_ORIGINAL_FOLLOWS, _ORIGINAL_SIZE = 0x80, 7
_LOGICAL_CLOCK = 2
_SHORT, _LONG, _LONGER, _LONGEST = 250, 252, 253, 254
"""Up to the first, the byte is the number itself; the others are followed by two, three and eight bytes."""

_KIND_AND_SIZE = Struct("<4xB4xI").unpack_from
_XID, _PAYLOAD = int(EventType.XID), int(EventType.TRANSACTION_PAYLOAD)
_XID_SIZE = HEADER_SIZE + 8

_Begin = tuple[int, bytes | str, int, int, int]
"""Event's size, uuid or tagged name (empty: anonymous), transaction number, sequence number, transaction's length."""


def hop(data: mmap | bytes, at: int, end: int, trailer: int, runs: list[GtidRun]) -> int:
    """Add the GTIDs of complete transactions to `runs`, starting at the GTID event at `at`.

    Returns the start of the first transaction that must be walked: `at` itself, or another GTID event.
    """
    name: bytes | str = b""
    first = following = 0
    begin = _begin(data, at, end, trailer)
    while begin is not None:
        size, who, number, sequence, length = begin
        stop = at + length
        after = _begin(data, stop, end, trailer) if stop > at else None
        if after is None or after[3] != sequence + 1 or not _ends_at(data, at, size, stop, trailer):
            break
        if number == following and who == name:
            following += 1
        else:
            _note(runs, name, first, following)
            name, first, following = who, number, number + 1
        at, begin = stop, after
    _note(runs, name, first, following)
    return at


def _note(runs: list[GtidRun], name: bytes | str, first: int, following: int) -> None:
    if name:
        extend(runs, GtidRun(uuid_text(name) if isinstance(name, bytes) else name, first, following - 1))


def _ends_at(data: mmap | bytes, at: int, size: int, stop: int, trailer: int) -> bool:
    """Whether the transaction whose GTID event of `size` bytes is at `at` has its last event right before `stop`."""
    last = _XID_SIZE + trailer
    if stop - last >= at + size and _KIND_AND_SIZE(data, stop - last) == (_XID, last):
        return True
    inner = at + size
    return inner < stop and _KIND_AND_SIZE(data, inner) == (_PAYLOAD, stop - inner)


def _begin(data: mmap | bytes, at: int, end: int, trailer: int) -> _Begin | None:
    """The content of the GTID event at `at`, None if it has no length or is not one."""
    if at + _LENGTH_AT + _ORIGINAL_SIZE + 5 > end:
        return None
    kind, size, uuid, number, clock, sequence, high, code, more = _EVENT(data, at)
    if kind not in _UNTAGGED:
        return _tagged_begin(data, at, size, end) if kind == _TAGGED else None
    used = _LENGTH_AT + 1
    if high & _ORIGINAL_FOLLOWS:
        code, more = _LENGTH(data, at + _LENGTH_AT + _ORIGINAL_SIZE)
        used += _ORIGINAL_SIZE
    length = code
    if code > _SHORT:
        if code == _LONG:
            used, length = used + 2, more & 0xFFFF
        elif code == _LONGER:
            used, length = used + 3, more & 0xFFFFFF
        elif code == _LONGEST:
            used, length = used + 8, int.from_bytes(data[at + used : at + used + 8], "little")
        else:
            return None
    if clock != _LOGICAL_CLOCK or used + trailer > size:
        return None
    return size, uuid if kind == _GTID else b"", number, sequence, length


def _tagged_begin(data: mmap | bytes, at: int, size: int, end: int) -> _Begin | None:
    if at + size > end:
        return None
    try:
        event = read_tagged(data[at : at + size])
    except (IndexError, ValueError):
        return None
    return (size, event.name, event.gno, event.sequence, event.length)
