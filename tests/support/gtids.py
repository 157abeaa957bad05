"""The single GTIDs of a log, and sets of them."""

import io
from collections.abc import Iterable

from dmdelta.binlog.events.boundary import BoundaryTracker, walk_events
from dmdelta.model.gtid import GtidRun, GtidSet, MariadbGtidSet, MysqlGtidSet
from dmdelta.model.segment import Segment


def spelled(runs: Iterable[GtidRun]) -> list[str]:
    """Each GTID of the runs as text, in log order."""
    return [
        f"{name}{':' if len(name) >= 36 else '-'}{number}"
        for name, first, last in runs
        for number in range(first, last + 1)
    ]


def completed_gtids(data: bytes, segment: Segment) -> list[str]:
    """The GTIDs of a segment's complete transactions, determined event by event."""
    tracker, found = BoundaryTracker(), []
    for header, body in walk_events(io.BytesIO(data), segment):
        tracker.feed(header.event_type, body, header.server_id)
        if tracker.completed is not None:
            found.append(tracker.completed)
    return found


def half_of(gtids: Iterable[str | None]) -> GtidSet:
    """A set with about half of a log's transactions: every second one, of MariaDB the older ones."""
    names = list(dict.fromkeys(gtid for gtid in gtids if gtid is not None))
    chosen: GtidSet = MysqlGtidSet() if ":" in names[0] else MariadbGtidSet()
    for name in names[::2] if ":" in names[0] else names[: len(names) // 2]:
        chosen = chosen.add(name)
    return chosen
