"""Leaves out whole transactions by their GTIDs.

Every transaction of a log with GTIDs begins with a GTID event: the events up to the next one belong to it.
"""

from collections.abc import Iterable, Iterator

from dmdelta.binlog.events.framing import RawEvent
from dmdelta.binlog.events.gtid import parse_gtid
from dmdelta.binlog.events.header import GTID_EVENTS, EventType
from dmdelta.model.gtid import GtidSet


def is_skipped(event: bytes, skipped: GtidSet) -> bool:
    """Whether a GTID event (header included, checksum not) begins a transaction of the set.

    Raises:
        CorruptBinlog: the event is too short.
    """
    gtid = parse_gtid(event).text
    return gtid is not None and gtid in skipped


def without_skipped(events: Iterable[RawEvent], skipped: GtidSet) -> Iterator[RawEvent]:
    """The events of a segment without those of the transactions in a set.

    Raises:
        CorruptBinlog: as `is_skipped`.
    """
    inside = False
    for raw in events:
        kind = raw[0]
        if kind in GTID_EVENTS:
            inside = is_skipped(raw[3], skipped)
        if not inside or kind == EventType.INCIDENT:
            yield raw
