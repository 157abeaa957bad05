"""What a run knows of each table of a source: its phase, and where its log continues.

One record per table. Only the scheduler (`dmdelta.engine.apply.scheduler`) moves phases; all others ask it to.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from dmdelta.checkpoint import RestartPlan
from dmdelta.errors import QualityError, SchemaError
from dmdelta.lakehouse.history import OwnCommit
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.sharding import Waiting

TableError = SchemaError | QualityError
"""Why a table stops alone: silver cannot follow its structure, or its rows violate a contract."""


class Phase(Enum):
    """What happens to a table while a run applies ranges."""

    FOLLOWING = "following"
    """Each range is applied to it, together with the other tables."""
    MAINTENANCE = "maintenance"
    """It is compacted or vacuumed; nothing is applied meanwhile."""
    SNAPSHOT = "snapshot"
    """It is read from the source again; its silver table is replaced at the end."""
    LATE = "late"
    """It is behind the other tables and catches up, while they follow."""
    WAITING = "waiting"
    """A shard whose statement waits for other shards of its merged table."""
    STOPPED = "stopped"
    """Silver cannot follow it, or its rows violate a contract."""


TRANSITIONS: Mapping[Phase, frozenset[Phase]] = {
    Phase.FOLLOWING: frozenset({Phase.MAINTENANCE, Phase.SNAPSHOT, Phase.LATE, Phase.WAITING, Phase.STOPPED}),
    Phase.MAINTENANCE: frozenset({Phase.LATE, Phase.SNAPSHOT}),
    Phase.SNAPSHOT: frozenset({Phase.LATE, Phase.STOPPED}),
    Phase.LATE: frozenset({Phase.FOLLOWING, Phase.SNAPSHOT, Phase.WAITING, Phase.STOPPED}),
    Phase.WAITING: frozenset({Phase.LATE, Phase.SNAPSHOT, Phase.STOPPED}),
    Phase.STOPPED: frozenset({Phase.LATE, Phase.SNAPSHOT}),
}
"""Where a table may go from each phase. A table that returns to FOLLOWING catches up first, so it passes LATE."""


class ForbiddenTransition(RuntimeError):
    """A phase was assigned that cannot follow the table's current one: a defect of the scheduler."""


@dataclass(slots=True)
class TableState:
    """One source table during a run.

    Attributes:
        error: why it is STOPPED.
        waits: what it waits for in WAITING.
        reload: replaces the rows of a STOPPED table whose snapshot could not be applied yet; called before it resumes.
        read_at: where its log continues after a snapshot that read it exactly at one position.
        caught_up: up to where it was applied apart from the ranges.
        resync_until: what begins before it was held back from a shard, and is applied in safe mode.
        safe_until: the same, as the table's newest own commit says.
        plan: how it continues after the start of the run, or after it was paused; None: not planned yet.
        structure: its structure behind the last range that was applied; None: unknown.
        version: the transaction version of its newest own commit.
        newest: that commit itself, until the first request has used it.
        is_safe: its last range was applied in safe mode.
        commits: so many since its last maintenance.
    """

    name: TableName
    _phase: Phase = Phase.FOLLOWING
    error: TableError | None = None
    waits: Waiting | None = None
    reload: Callable[[], object] | None = None
    read_at: Position | None = None
    caught_up: Position | None = None
    resync_until: Position | None = None
    safe_until: Position | None = None
    plan: RestartPlan | None = None
    structure: TableSchema | None = None
    version: int | None = None
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
        """Enter a phase, with what belongs to it.

        Raises:
            ForbiddenTransition: it cannot follow the current one.
        """
        if phase not in TRANSITIONS[self._phase]:
            raise ForbiddenTransition(f"{'.'.join(self.name)}: {self._phase.value} → {phase.value}")
        self._phase, self.error, self.waits, self.reload = phase, error, waits, reload

    def forget(self) -> None:
        """Drop what is known of the silver table: the next request reads its history again."""
        self.plan = self.structure = self.version = self.newest = None


@dataclass(slots=True)
class TableStates:
    """The states of a source's tables. Any thread may read; a table that nobody has met is FOLLOWING."""

    _states: dict[TableName, TableState] = field(default_factory=dict)

    def of(self, name: TableName) -> TableState:
        return self._states.setdefault(name, TableState(name))

    def __iter__(self) -> Iterator[TableState]:
        return iter(list(self._states.values()))  # appliers meet new tables meanwhile

    def in_phase(self, *phases: Phase) -> frozenset[TableName]:
        return frozenset(state.name for state in self if state.phase in phases)

    @property
    def held(self) -> frozenset[TableName]:
        """The tables that do not follow the ranges now."""
        return frozenset(state.name for state in self if state.phase is not Phase.FOLLOWING)

    @property
    def stopped(self) -> dict[TableName, TableError]:
        """The stopped tables and why."""
        return {state.name: state.error for state in self if state.error is not None}

    def read_exactly(self, positions: Mapping[TableName, Position]) -> None:
        """Take over where the log of tables continues that a snapshot read exactly at one position."""
        for name, position in positions.items():
            self.of(name).read_at = position
