"""The current positions and states of a running source's stages, which metrics show in addition to the counters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from dmdelta.model.position import Position
from dmdelta.model.segment import Segment
from dmdelta.quality.pending import ErrorState
from dmdelta.sink.metrics import SinkMetrics


@dataclass(frozen=True, slots=True)
class ValidatorFigures:
    """What the validator has counted.

    Attributes:
        validated: rows that were looked at and agreed, since its first start.
        pending: rows that differ for now.
        errors: by state.
        stopped: it has stopped by itself.
    """

    validated: int
    pending: int
    errors: dict[ErrorState, int]
    stopped: bool


@dataclass(frozen=True, slots=True)
class SourceStats:
    """
    Attributes:
        positions: by stage, in the order of the data flow: server, relayed, landed, applied, flushed, sink_pushed,
            sink_ready, sunk, validated. A stage that has not started is missing; `sunk` is then the origin.
        relay_streams: the relay is connected, or has caught up as requested.
        relay_retries: consecutive failed attempts.
        relay_free_bytes: free bytes of the disk that holds the segments.
        relay_bytes: bytes of the log in segments, landed or not.
        waiting_bytes: the part of them that a stage after the relay has not reached.
        safe_tables: number of tables whose last range was applied in safe mode.
        stopped, waiting: number of stopped tables, and of shards that wait for others.
        memory_bytes: size of the landed rows in memory.
        sink: its counters; None without a sink, or before the target was reached.
        sink_stopped: it has stopped on an error.
        validator: its counters; None without a validator, or before it has started.
    """

    source_id: str
    positions: Mapping[str, Position] = field(default_factory=dict)
    relay_streams: bool = False
    relay_retries: int = 0
    relay_free_bytes: int = 0
    relay_bytes: int = 0
    waiting_bytes: Mapping[str, int] = field(default_factory=dict)
    safe_tables: int = 0
    stopped: int = 0
    waiting: int = 0
    memory_bytes: int = 0
    sink: SinkMetrics | None = None
    sink_stopped: bool = False
    validator: ValidatorFigures | None = None

    @property
    def slowest(self) -> Position | None:
        """The position of the slowest stage; None if one of them has not started."""
        behind = {"relayed", "landed", "applied", "flushed"}
        return min(self.positions.values()) if behind <= self.positions.keys() else None


def bytes_beyond(segments: Sequence[Segment], position: Position) -> int:
    """Bytes of the log in segments after a position; `segments` in log order."""
    beyond = takewhile(lambda segment: segment.end_position > position, reversed(segments))
    return sum(_beyond(segment, position) for segment in beyond)


def _beyond(segment: Segment, position: Position) -> int:
    inside = segment.begin_position < position
    return segment.end - position.offset if inside else segment.size
