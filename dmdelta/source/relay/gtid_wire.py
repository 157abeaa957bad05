"""GTID sets in binary form: in COM_BINLOG_DUMP_GTID, and in the first events of a binlog file.

Formats: MySQL sql/rpl_gtid_set.cc (`Gtid_set::encode`; since 8.3 a tagged form, its first 8 bytes being
format << 56 | count << 8 | format); MariaDB, "GTID_LIST_EVENT".
"""

from struct import Struct, error
from uuid import UUID

from dmdelta.binlog.events.header import HEADER_SIZE, EventType
from dmdelta.errors import CorruptBinlog
from dmdelta.model.gtid import GtidSet, MariadbGtidSet, MysqlGtidSet

_U64 = Struct("<Q")
_INTERVAL = Struct("<QQ")
_U32 = Struct("<I")
_LIST_ENTRY = Struct("<IIQ")
_TAGGED = 1
_LIST_COUNT = (1 << 28) - 1
"""The four bits above are flags."""

BEGINNINGS = frozenset({EventType.PREVIOUS_GTIDS, EventType.MARIADB_GTID_LIST})
"""Events at the start of a file that name the set before it."""


def encode_gtid_set(gtids: MysqlGtidSet) -> bytes:
    """MySQL's binary form; the tagged one only if there are tags, because servers before 8.3 reject it."""
    tagged = any(":" in name for name in gtids.intervals)
    count = len(gtids.intervals)
    parts = [_U64.pack(_TAGGED << 56 | count << 8 | _TAGGED if tagged else count)]
    for name, spans in gtids.intervals.items():
        uuid, _, tag = name.partition(":")
        parts.append(UUID(uuid).bytes)
        if tagged:
            parts.append(bytes([len(tag) << 1]) + tag.encode("ascii"))
        parts.append(_U64.pack(len(spans)))
        parts.extend(_INTERVAL.pack(first, last + 1) for first, last in spans)
    return b"".join(parts)


def decode_gtid_set(data: bytes) -> MysqlGtidSet:
    """The set encoded in MySQL's binary form.

    Raises:
        CorruptBinlog: the data is truncated.
    """
    try:
        return _decode(data)
    except (error, IndexError, ValueError) as damage:
        raise CorruptBinlog("a PREVIOUS_GTIDS event is truncated", hint="fetch the file again") from damage


def _decode(data: bytes) -> MysqlGtidSet:
    (count,) = _U64.unpack_from(data)
    tagged = count >> 56 == _TAGGED
    if tagged:
        count = count >> 8 & (1 << 48) - 1
    at = _U64.size
    intervals: dict[str, tuple[tuple[int, int], ...]] = {}
    for _ in range(count):
        name = str(UUID(bytes=bytes(data[at : at + 16])))
        at += 16
        if tagged:
            size = data[at] >> 1
            tag = bytes(data[at + 1 : at + 1 + size]).decode("ascii")
            name += f":{tag}" if tag else ""
            at += 1 + size
        (spans,) = _U64.unpack_from(data, at)
        at += _U64.size
        pairs = [_INTERVAL.unpack_from(data, at + _INTERVAL.size * number) for number in range(spans)]
        at += _INTERVAL.size * spans
        intervals[name] = tuple((first, end - 1) for first, end in pairs)
    return MysqlGtidSet(dict(sorted(intervals.items())))


def set_before_file(event: bytes) -> GtidSet:
    """The set in a PREVIOUS_GTIDS or GTID_LIST event (with header, without checksum).

    Raises:
        CorruptBinlog: the event is truncated.
    """
    if event[4] == EventType.PREVIOUS_GTIDS:
        return decode_gtid_set(event[HEADER_SIZE:])
    gtids = MariadbGtidSet()
    try:
        count = _U32.unpack_from(event, HEADER_SIZE)[0] & _LIST_COUNT
        for number in range(count):
            domain, server, seq = _LIST_ENTRY.unpack_from(event, HEADER_SIZE + 4 + number * _LIST_ENTRY.size)
            gtids = gtids.add(f"{domain}-{server}-{seq}")
    except error as damage:
        raise CorruptBinlog("a GTID_LIST event is truncated", hint="fetch the file again") from damage
    return gtids
