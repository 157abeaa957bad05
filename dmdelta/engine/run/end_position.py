"""The position of a source after a pause or stop, and the tables and the sink that are at another position."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dmdelta.checkpoint import ORIGIN, FlushReason
from dmdelta.engine.control.state import Reason
from dmdelta.engine.run.pipeline import SourcePipeline
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.source.preflight.finding import listed

log = get_logger(__name__)
SINK = "the sink"
MAX_NAMES = 20
"""The number of tables that a message lists."""


@dataclass(frozen=True, slots=True)
class EndPosition:
    """
    Attributes:
        position: the end of the last range that the tables received. A table without changes before it is there, too.
        apart: what is elsewhere: the position by `schema.table`, or by SINK; None: before its first change.
    """

    source_id: str
    position: Position
    apart: Mapping[str, Position | None]


def plan_end_position(source_id: str, position: Position, known: Mapping[str, Position | None]) -> EndPosition:
    """The end position of a source.

    Args:
        known: the positions of the sink and of the tables that may not have reached `position`.
    """
    return EndPosition(
        source_id, position, {name: at for name, at in sorted(known.items()) if (at or ORIGIN) != position}
    )


def plan_reason(ends: Sequence[EndPosition]) -> Reason | None:
    """What a user needs to know of the tables that are apart; None if there are none."""
    parts = []
    for end in ends:
        names = [f"{name} at {at or 'its begin'}" for name, at in end.apart.items()]
        if names:
            parts.append(f"{end.source_id} is at {end.position}, except {listed(names, MAX_NAMES)}")
    if not parts:
        return None
    hint = "nothing is lost: each table continues from its own position; to read all tables at one position, resume"
    return Reason("; ".join(parts), f"{hint} and pause again when the lag is small")


def end_position(pipeline: SourcePipeline) -> EndPosition:
    """Where an ended pipeline is; logs it."""
    scheduler = pipeline.applying.scheduler
    points = scheduler.tables.points
    positions = {point.name: point.point.position for point in points.snapshot(FlushReason.INTERVAL).tables}
    lacking = points.pending() | scheduler.states.held
    known = {".".join(name): positions.get(name) for name in lacking}
    if pipeline.sinking is not None:
        known[SINK] = pipeline.sinking.position
    end = plan_end_position(pipeline.source_id, scheduler.reached or points.reached, known)
    apart = {name: str(at) for name, at in end.apart.items()}
    if apart:
        log.warning(
            "source ended, not all tables at one position", source=end.source_id, at=str(end.position), apart=apart
        )
    else:
        log.info("source ended, all tables at one position", source=end.source_id, at=str(end.position))
    return end
