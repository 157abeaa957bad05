"""The current positions and states of a running source's stages, which metrics show in addition to the counters."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from dmdelta.engine.apply.table_state import Phase
from dmdelta.engine.run.pipeline import SourcePipeline
from dmdelta.engine.validation.validator import ValidatorFigures
from dmdelta.model.position import Position
from dmdelta.model.segment import Segment
from dmdelta.sink.metrics import SinkMetrics
from dmdelta.source.relay.relay_task import RelayStatus, read_status

_BEHIND_RELAY = ("landed", "applied", "flushed", "sunk")


@dataclass(frozen=True, slots=True)
class SourceMoment:
    """
    Attributes:
        positions: by stage, in the order of the data flow: server, relayed, landed, applied, flushed, sunk,
            validated. A stage that has not started is missing.
        relay_streams: the relay is connected, or has caught up as requested.
        relay_retries: consecutive failed attempts.
        relay_free_bytes: free bytes of the disk that holds the segments.
        relay_bytes: bytes of the log in segments, landed or not.
        waiting_bytes: the part of them that a stage after the relay has not reached.
        safe_tables: number of tables whose last range was applied in safe mode.
        stopped, waiting: number of stopped tables, and of shards that wait for others.
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
    sink: SinkMetrics | None = None
    sink_stopped: bool = False
    validator: ValidatorFigures | None = None

    @property
    def slowest(self) -> Position | None:
        """The position of the slowest stage; None if one of them has not started."""
        behind = {"relayed", "landed", "applied", "flushed"}
        return min(self.positions.values()) if behind <= self.positions.keys() else None


def moment_of(pipeline: SourcePipeline) -> SourceMoment:
    """The current state of a source. Reads only memory and the relay's folder."""
    folder, tables = pipeline.relaying.folder, pipeline.applying.scheduler.tables
    states = tables.requests.states
    relay, sinking, validator = read_status(folder), pipeline.sinking, pipeline.validator
    sink = sinking.metrics if sinking is not None else None
    flushed = sink.flushed if sink is not None else None
    positions = {
        "server": _server(relay),
        "relayed": Position(relay.epoch, relay.binlog_file, relay.offset) if relay and relay.binlog_file else None,
        "landed": pipeline.landing.reached,
        "applied": tables.points.reached,
        "flushed": pipeline.flusher.flushed,
        "sunk": Position.parse(flushed) if flushed is not None else None,
        "validated": validator.reached if validator is not None else None,
    }
    reached = {stage: place for stage, place in positions.items() if place is not None and place.epoch > 0}
    segments = pipeline.landing.segments
    return SourceMoment(
        source_id=pipeline.source_id,
        positions=reached,
        relay_streams=relay is not None and relay.state in ("streaming", "caught up"),
        relay_retries=relay.retries if relay else 0,
        relay_free_bytes=shutil.disk_usage(folder).free if folder.exists() else 0,
        relay_bytes=sum(segment.size for segment in segments),
        waiting_bytes={stage: bytes_beyond(segments, reached[stage]) for stage in _BEHIND_RELAY if stage in reached},
        safe_tables=sum(state.is_safe for state in states),
        stopped=len(states.in_phase(Phase.STOPPED)),
        waiting=len(states.in_phase(Phase.WAITING)),
        sink=sink,
        sink_stopped=sinking is not None and sinking.failure is not None,
        validator=validator.figures if validator is not None else None,
    )


def bytes_beyond(segments: Sequence[Segment], position: Position) -> int:
    """Bytes of the log in segments after a position; `segments` in log order."""
    beyond = takewhile(lambda segment: segment.end_position > position, reversed(segments))
    return sum(_beyond(segment, position) for segment in beyond)


def _beyond(segment: Segment, position: Position) -> int:
    inside = segment.begin_position < position
    return segment.end - position.offset if inside else segment.size


def _server(relay: RelayStatus | None) -> Position | None:
    return Position(relay.epoch, relay.server_file, relay.server_offset) if relay and relay.server_file else None
