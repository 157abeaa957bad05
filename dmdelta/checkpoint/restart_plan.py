"""Where, and in which mode, a table resumes after a start. Pure: evidence in, plan out.

After a crash DM knows only that changes after the checkpoint may have been applied. dmdelta knows more: a silver commit
carries its position, so the table's own history is proof; so is an unchanged Delta version. Only if both are missing
(the log retention removed the commit), the decision is DM's, based on the exit point of the last flush.
"""

from dataclasses import dataclass, replace
from datetime import timedelta

from dmdelta.checkpoint.points import ORIGIN, FlushReason, StoredPoints, TablePoint
from dmdelta.errors import LakehouseError
from dmdelta.model.position import Position


@dataclass(frozen=True, slots=True)
class TableEvidence:
    """The evidence of the table itself.

    Attributes:
        history: the end position of its newest commit by this task for this source, if its history still contains one.
        delta_version: its current Delta version, None if the table does not exist.
    """

    schema: str
    table: str
    history: Position | None
    delta_version: int | None

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True, slots=True)
class SourceEvidence:
    """The evidence of the source that a table's events come from.

    Attributes:
        landed: the end of bronze, None if nothing has landed; nothing beyond it can have been applied.
        stored: the points of the last flush, None if there was none.
    """

    landed: Position | None
    stored: StoredPoints | None


@dataclass(frozen=True, slots=True)
class SafeModePolicy:
    """The safe mode settings of the spec.

    Attributes:
        always: `safe-mode: true`.
        window: minimum duration of safe mode if a crash left no exit point (`safe-mode-duration`).
    """

    always: bool
    window: timedelta


@dataclass(frozen=True, slots=True)
class RestartPlan:
    """How a table resumes.

    Attributes:
        start: everything of the table below it is applied.
        safe_until: ranges that start before it are applied in safe mode.
        safe_for: ranges that start within this time of the run are applied in safe mode.
        always: every range is applied in safe mode.
        reason: for logs and status.
    """

    start: Position
    reason: str
    safe_until: Position | None = None
    safe_for: timedelta = timedelta(0)
    always: bool = False

    def is_safe(self, begin: Position, elapsed: timedelta) -> bool:
        """Whether a range that starts at `begin`, `elapsed` after the run's start, is applied in safe mode."""
        ahead = self.safe_until is not None and begin < self.safe_until
        return self.always or ahead or elapsed < self.safe_for


def plan_restart(table: TableEvidence, source: SourceEvidence, policy: SafeModePolicy) -> RestartPlan:
    """Decide for one table.

    Raises:
        LakehouseError: bronze or the table does not exist, although the checkpoint refers to it.
    """
    check_bronze(source)
    plan = _plan_by_proof(table, source) or _plan_by_exit_point(table, source, policy)
    if not policy.always:
        return plan
    return replace(plan, always=True, reason=f"safe-mode is on; {plan.reason}")


def inherited_exit(source: SourceEvidence) -> Position | None:
    """The position up to which earlier runs may have applied changes: the exit point that a run starts with.

    None after an orderly stop without uncertain changes.
    """
    stored = source.stored
    exit_point = stored.exit_point.position if stored and stored.exit_point else None
    if stored is not None and (stored.reason.is_orderly or (exit_point and stored.reason.ends_the_run)):
        return exit_point
    # The run continued after its last flush: it may have applied more than that flush's exit point says, but never more
    # than has landed. DM, which has no such bound, relies on time alone.
    return max((known for known in (exit_point, source.landed) if known is not None), default=None)


def check_bronze(source: SourceEvidence) -> None:
    """Check that bronze contains at least what the checkpoint records as applied.

    Raises:
        LakehouseError: it does not, so it was removed or replaced.
    """
    if source.stored is None or source.stored.global_point.position == ORIGIN:
        return
    applied = source.stored.global_point.position
    if source.landed is None or source.landed < applied:
        raise LakehouseError(
            "bronze ends before the checkpoint",
            hint="restore the bronze table; to start over, also remove the task's silver and metadata tables",
            bronze_ends=str(source.landed),
            checkpoint=str(applied),
        )


def _plan_by_proof(table: TableEvidence, source: SourceEvidence) -> RestartPlan | None:
    """Normal mode if the table's progress is proven."""
    stored, own = source.stored, _own_point(table, source)
    floor = _floor(table, source)
    if table.history is not None:
        start = max(table.history, floor)
        return RestartPlan(start, f"the table's own history ends at {table.history}")
    if table.delta_version is None:
        if own is not None and own.delta_version is not None:
            raise LakehouseError(
                f"silver table {table} does not exist any more",
                hint="restore it; to rebuild everything from bronze, remove the task's silver and metadata tables",
                checkpoint=str(floor),
                delta_version=own.delta_version,
            )
        if stored is None:
            return RestartPlan(floor, "nothing was applied before")
        return RestartPlan(floor, f"new table: it had no events before {floor}")
    if own is not None and own.delta_version == table.delta_version:
        return RestartPlan(floor, f"at Delta version {own.delta_version}, as recorded in the checkpoint")
    return None


def _plan_by_exit_point(table: TableEvidence, source: SourceEvidence, policy: SafeModePolicy) -> RestartPlan:
    """DM's decision, by the exit point of the last flush."""
    stored = source.stored
    start = _floor(table, source)
    doubt = inherited_exit(source)
    if stored is None:
        reason = f"neither checkpoint nor history found: safe mode for {policy.window} and until {doubt}"
        return RestartPlan(start, reason, doubt, policy.window)
    if not stored.reason.ends_the_run or (stored.reason is FlushReason.PAUSE and stored.exit_point is None):
        reason = f"a crash left no exit point: safe mode for {policy.window} and until {doubt}"
        return RestartPlan(start, reason, doubt, policy.window)
    if doubt is None:
        return RestartPlan(start, "orderly stop")
    if doubt <= start:
        return RestartPlan(start, f"everything up to the exit point {doubt} is applied")
    reason = f"events from {start} to the exit point {doubt} may have been applied: safe mode until then"
    return RestartPlan(start, reason, doubt)


def _own_point(table: TableEvidence, source: SourceEvidence) -> TablePoint | None:
    return source.stored.tables.get((table.schema, table.table)) if source.stored else None


def _floor(table: TableEvidence, source: SourceEvidence) -> Position:
    """The position below which everything of the table is applied: its own checkpoint, or the global one."""
    if source.stored is None:
        return ORIGIN
    own = _own_point(table, source)
    below = source.stored.global_point.position
    return max(own.point.position, below) if own else below
