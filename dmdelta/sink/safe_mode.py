"""Safe mode of the sink: on where nothing proves what was executed, as seeds 003 and 004 have it.

By default every transaction records what it executes, and a restart leaves just that out: no safe mode. Where the
records are gone, what lies before the exit point may have been executed; with no exit point, what the first two flush
intervals bring and what had landed at the start. How statements are written then is `merger`'s business.
"""

from dataclasses import dataclass

from dmdelta.model.position import Position

WINDOW_INTERVALS = 2


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known at a start.

    Attributes:
        checkpoint: where the sink begins, None if nothing tells it.
        exit_point: up to where an earlier run may have executed, None if nothing tells it.
        orderly: the last run ended in order: nothing was in flight.
        proven: the records of what was executed behind the checkpoint are there.
        landed: where bronze ended at the start.
    """

    checkpoint: Position | None
    exit_point: Position | None = None
    orderly: bool = False
    proven: bool = True
    landed: Position | None = None


@dataclass(frozen=True, slots=True)
class SafeMode:
    """Where statements are written so that executing them twice does no harm.

    Attributes:
        always: everywhere.
        until: before this position.
        window: and for so many seconds from the start.
    """

    always: bool = False
    until: Position | None = None
    window: float = 0.0
    reason: str = ""

    def is_on(self, begin: Position, seconds: float) -> bool:
        """Whether changes from `begin` on need it, so many seconds after the start."""
        return self.always or (self.until is not None and begin < self.until) or seconds < self.window


def plan_safe_mode(evidence: Evidence, *, always: bool, flush_interval: float) -> SafeMode:
    """Decide. `flush_interval`: seconds."""
    if always:
        return SafeMode(always=True, reason="safe-mode is true")
    checkpoint, exit_point = evidence.checkpoint, evidence.exit_point
    if checkpoint is not None and evidence.proven:
        return SafeMode(reason="every executed change is recorded")
    if checkpoint is not None and evidence.orderly:
        return SafeMode(reason="the last run ended in order")
    if checkpoint is not None and exit_point is not None:
        if checkpoint < exit_point:
            return SafeMode(until=exit_point, reason="records are gone: up to the exit point")
        return SafeMode(reason="the checkpoint is the exit point")
    window = WINDOW_INTERVALS * flush_interval
    return SafeMode(until=evidence.landed, window=window, reason="nothing tells what was executed")
