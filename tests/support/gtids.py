"""The single GTIDs of a log."""

import io
from collections.abc import Iterable

from dmdelta.binlog.events.boundary import BoundaryTracker, walk_events
from dmdelta.model.gtid import GtidRun
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
