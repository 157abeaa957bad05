"""The sink's safe mode: on if it is not known what was executed, as in DM.

By default every transaction records what it executes, and a restart skips exactly that: no safe mode. If the records
are missing, everything before the exit point may have been executed; if the last run left none, as a killed one does,
everything that had landed at the start and, as in DM, everything in the first seconds (`safe-mode-duration`). `merger`
decides how statements are then written.
"""

from dataclasses import dataclass, replace

from dmdelta.model.position import Position


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known at the start.

    Attributes:
        checkpoint: where the sink starts; None if unknown.
        exit_point: up to where an earlier run may have executed changes; None if unknown.
        ended: the last run wrote the exit point when it ended: nothing after it was executed.
        proven: the records of what was executed after the checkpoint are complete.
        landed: where bronze ended at the start.
    """

    checkpoint: Position | None
    exit_point: Position | None = None
    ended: bool = False
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
        return self.always or self.is_unknown(begin, seconds)

    def is_unknown(self, begin: Position, seconds: float) -> bool:
        """Whether an earlier run may have executed changes from `begin` on without a record."""
        return (self.until is not None and begin < self.until) or seconds < self.window


def plan_safe_mode(evidence: Evidence, *, always: bool, duration: float) -> SafeMode:
    """Decide. `duration`: seconds of safe mode if the last run left no exit point."""
    found = _unknown(evidence, duration)
    return replace(found, always=True, reason=f"safe-mode is true; {found.reason}") if always else found


def _unknown(evidence: Evidence, duration: float) -> SafeMode:
    checkpoint, exit_point = evidence.checkpoint, evidence.exit_point
    if checkpoint is not None and evidence.proven:
        return SafeMode(reason="every executed change is recorded")
    if checkpoint is not None and exit_point is not None and evidence.ended:
        if checkpoint < exit_point:
            return SafeMode(until=exit_point, reason="records are missing: up to the exit point")
        return SafeMode(reason="the checkpoint is the exit point")
    until = max((at for at in (evidence.landed, exit_point) if at is not None), default=None)
    return SafeMode(until=until, window=duration, reason="it is not known what was executed")
