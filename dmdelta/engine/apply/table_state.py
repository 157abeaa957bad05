"""The state of each table of a source during a run: its phase, and where its log continues.

One record per table. Only the scheduler (`dmdelta.engine.apply.scheduler`) changes phases.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from dmdelta.checkpoint import RestartPlan
from dmdelta.engine.apply.turns import PendingRange
from dmdelta.errors import QualityError, SchemaError
from dmdelta.lakehouse.history import OwnCommit
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.sharding import Waiting
from dmdelta.silver.schema.range_profile import StructureEvent

TableError = SchemaError | QualityError
"""An error that stops only its table: silver cannot follow its schema, or its rows violate a contract."""


class Phase(Enum):
    """The phase of a table while a run applies ranges."""

    FOLLOWING = "following"
    """Its pending ranges are applied to it, in its turns."""
    MAINTENANCE = "maintenance"
    """It is being compacted or vacuumed; its ranges accumulate meanwhile."""
    SNAPSHOT = "snapshot"
    """A snapshot reads it from the source again, and replaces its silver table at the end."""
    WAITING = "waiting"
    """A shard whose statement waits for other shards of its merged table."""
    STOPPED = "stopped"
    """Silver cannot follow it, or its rows violate a contract."""


TRANSITIONS: Mapping[Phase, frozenset[Phase]] = {
    Phase.FOLLOWING: frozenset({Phase.MAINTENANCE, Phase.SNAPSHOT, Phase.WAITING, Phase.STOPPED}),
    Phase.MAINTENANCE: frozenset({Phase.FOLLOWING, Phase.SNAPSHOT}),
    Phase.SNAPSHOT: frozenset({Phase.FOLLOWING, Phase.STOPPED}),
    Phase.WAITING: frozenset({Phase.FOLLOWING, Phase.SNAPSHOT, Phase.STOPPED}),
    Phase.STOPPED: frozenset({Phase.FOLLOWING, Phase.SNAPSHOT}),
}
"""The phases that may follow each phase."""
LEFT_OUT = frozenset({Phase.SNAPSHOT, Phase.WAITING, Phase.STOPPED})
"""The phases in which no ranges accumulate: the table resumes where its log continues, with one range per epoch."""


class ForbiddenTransition(RuntimeError):
    """The phase cannot follow the table's current one: a defect of the scheduler."""


@dataclass(slots=True)
class TableState:
    """One source table during a run.

    Attributes:
        error: the reason for STOPPED.
        waits: what it waits for in WAITING.
        reload: replaces the rows of a STOPPED table whose snapshot could not be applied yet; its first turn after it
            has resumed calls it.
        read_at: where its log continues after an exact snapshot, which reads a table as of one position.
        pending: the ranges that it has not applied yet, in log order.
        behind_until: the end of the ranges that it still misses since it was held; None: it misses none.
        seconds: the recent cost of its turns, from `plan_cost`; None before the first.
        resync_until: requests that begin before it were deferred for a shard, and are applied in safe mode.
        safe_until: the same limit, from the table's newest own commit: a snapshot or a repair may have seen log before
            it. As of the table's last request, so the log may have passed it since.
        plan: how it continues after the start of the run, or after it was paused; None: not planned yet.
        structure: its schema after the last applied range; None: unknown.
        earlier: its structures and statements up to the end of its last range, until `structure` is known.
        is_new: no range of this run had events of it, so its structure is the one before the run.
        version: the transaction version of its newest own commit.
        delta_version: the silver table's Delta version after that commit; None: unknown.
        newest: that commit itself, until the first request has used it.
        is_safe: its last range was applied in safe mode.
        commits: number of commits since its last maintenance.
    """

    name: TableName
    _phase: Phase = Phase.FOLLOWING
    error: TableError | None = None
    waits: Waiting | None = None
    reload: Callable[[], object] | None = None
    read_at: Position | None = None
    pending: deque[PendingRange] = field(default_factory=deque)
    behind_until: Position | None = None
    seconds: float | None = None
    resync_until: Position | None = None
    safe_until: Position | None = None
    plan: RestartPlan | None = None
    structure: TableSchema | None = None
    earlier: tuple[StructureEvent, ...] | None = None
    is_new: bool = True
    version: int | None = None
    delta_version: int | None = None
    newest: OwnCommit | None = None
    is_safe: bool = False
    commits: int = 0

    @property
    def phase(self) -> Phase:
        return self._phase

    def move(
        self,
        phase: Phase,
        *,
        error: TableError | None = None,
        waits: Waiting | None = None,
        reload: Callable[[], object] | None = None,
    ) -> None:
        """Enter a phase, with its details.

        Raises:
            ForbiddenTransition: the phase cannot follow the current one.
        """
        if phase not in TRANSITIONS[self._phase]:
            raise ForbiddenTransition(f"{'.'.join(self.name)}: {self._phase.value} → {phase.value}")
        self._phase, self.error, self.waits, self.reload = phase, error, waits, reload

    def forget(self) -> None:
        """Discard the known state of the silver table, so that the next request reads its history again."""
        self.plan = self.structure = self.version = self.delta_version = self.newest = self.earlier = None
        self.is_new = False


@dataclass(slots=True)
class TableStates:
    """The states of a source's tables. Any thread may read; a table without a state yet is FOLLOWING."""

    _states: dict[TableName, TableState] = field(default_factory=dict)

    def of(self, name: TableName) -> TableState:
        return self._states.setdefault(name, TableState(name))

    def __iter__(self) -> Iterator[TableState]:
        return iter(list(self._states.values()))  # other threads add tables meanwhile

    def in_phase(self, *phases: Phase) -> frozenset[TableName]:
        return frozenset(state.name for state in self if state.phase in phases)

    @property
    def held(self) -> frozenset[TableName]:
        """The tables that may miss ranges which the others have: those that do not follow, or have just resumed."""
        return frozenset(
            state.name for state in self if state.phase is not Phase.FOLLOWING or state.behind_until is not None
        )

    @property
    def stopped(self) -> dict[TableName, TableError]:
        """The stopped tables, with the error of each."""
        return {state.name: state.error for state in self if state.error is not None}

    def read_exactly(self, positions: Mapping[TableName, Position]) -> None:
        """Set where the log of tables continues after an exact snapshot."""
        for name, position in positions.items():
            self.of(name).read_at = position
