"""The sink's safe mode: on if it is not known what was executed, as in DM.

By default every transaction records what it executes, and a restart skips exactly that: no safe mode. If the records
are missing, everything before the exit point may have been executed; without an exit point, everything in the first two
flush intervals and everything that had landed at the start. `merger` decides how statements are then written.
"""

from dataclasses import dataclass

from dmdelta.model.position import Position

WINDOW_INTERVALS = 2


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known at the start.

    Attributes:
        checkpoint: where the sink starts; None if unknown.
        exit_point: up to where an earlier run may have executed changes; None if unknown.
        orderly: the last run stopped normally: nothing was in flight.
        proven: the records of what was executed after the checkpoint are complete.
        landed: where bronze ended at the start.
    """

    checkpoint: Position | None
    exit_point: Position | None = None
    orderly: bool = False
    proven: bool = True
    landed: Position | None = None


@dataclass(frozen=True, slots=True)
class SafeMode:
    """Where statements are written so that executing them twice is harmless.

    Attributes:
        always: everywhere.
        until: before this position.
        window: and for this many seconds from the start.
    """

    always: bool = False
    until: Position | None = None
    window: float = 0.0
    reason: str = ""

    def is_on(self, begin: Position, seconds: float) -> bool:
        """Whether changes from `begin` on need safe mode, `seconds` after the start."""
        return self.always or (self.until is not None and begin < self.until) or seconds < self.window


def plan_safe_mode(evidence: Evidence, *, always: bool, flush_interval: float) -> SafeMode:
    """Decide. `flush_interval`: seconds."""
    if always:
        return SafeMode(always=True, reason="safe-mode is true")
    checkpoint, exit_point = evidence.checkpoint, evidence.exit_point
    if checkpoint is not None and evidence.proven:
        return SafeMode(reason="every executed change is recorded")
    if checkpoint is not None and evidence.orderly:
        return SafeMode(reason="the last run stopped normally")
    if checkpoint is not None and exit_point is not None:
        if checkpoint < exit_point:
            return SafeMode(until=exit_point, reason="records are missing: up to the exit point")
        return SafeMode(reason="the checkpoint is the exit point")
    window = WINDOW_INTERVALS * flush_interval
    return SafeMode(until=evidence.landed, window=window, reason="it is not known what was executed")
