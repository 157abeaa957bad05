"""The sharding groups of a running task and their locks, shared by the appliers of all sources."""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.sharding.group import Shard, ShardingGroup, Waiting
from dmdelta.sharding.lock import HoldsBoth, Lock, Mode, plan_lock
from dmdelta.sharding.operations import Columns, Operation, Verb, operations

JOINS = "(the columns that it begins with)"
"""The displayed statement of a shard that waits with the columns it starts with, not with a statement."""

IDLE_SECONDS = 30.0
"""After this long without a range, a shard that the log has not mentioned has the schema of the source's catalog."""


class Action(str, Enum):
    """What happens to a statement on a merged table."""

    WAIT = "wait"
    """The shard waits before it."""
    EXEC = "exec"
    """The merged table executes it now."""
    SKIP = "skip"
    """The merged table does not change: operator override."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision for one statement.

    Attributes:
        others: the structures of the other shards' rows from now on; None for an unknown one.
    """

    action: Action
    others: tuple[TableSchema | None, ...] = ()


@dataclass(frozen=True, slots=True)
class ShownLock:
    """A lock as displayed.

    Attributes:
        target: schema and table of the merged table.
        statements: the distinct statements of the waiting shards, the owner's first.
        ready, remain, conflicts: as in `Lock`.
    """

    target: TableName
    statements: tuple[str, ...]
    lock: Lock


@dataclass(slots=True)
class _Coordinated:
    """The state of one merged table.

    Attributes:
        existing: its columns, as last seen by a caller.
        expected: structures of shards that have not appeared in the log yet.
        decided: operator overrides by the operations of a statement.
        decided_ahead: operator overrides for the next statement of a waiting shard, by the shard's text.
    """

    group: ShardingGroup = field(default_factory=ShardingGroup)
    writing: threading.RLock = field(default_factory=threading.RLock)
    existing: Columns | None = None
    expected: dict[Shard, TableSchema] = field(default_factory=dict)
    decided: dict[frozenset[Operation], Action] = field(default_factory=dict)
    decided_ahead: dict[str, tuple[Action, frozenset[str]]] = field(default_factory=dict)
    opened: bool = False


class Coordination:
    """All groups of a task's run, for one writer of its merged tables: silver or the sink. Thread-safe."""

    def __init__(self, mode: Mode | None = None, at_once: HoldsBoth | None = None) -> None:
        """Create empty groups.

        Args:
            mode: None: shards are merged without coordination, and a statement that changes the merged table stops its
                shard.
            at_once: as in `plan_lock`; given for a table that does not distinguish the shards' rows. No operator
                override executes a RENAME there: the rows of the remaining shards would lack their column.
        """
        self.mode = mode
        self._at_once = at_once
        self._state = threading.Lock()
        self._tables: dict[TableName, _Coordinated] = {}
        self._active = 0
        self._opened: set[str] = set()
        self._applied_sources: set[str] = set()

    @contextmanager
    def turn(self, target: TableName) -> Iterator[bool]:
        """Hold the right to write a merged table; yields True for the first turn of a run."""
        table = self._table(target)
        with table.writing:
            first, table.opened = not table.opened, True
            yield first

    def set_schema(self, target: TableName, shard: Shard, schema: TableSchema | None) -> None:
        """Record the structure with which a shard continues."""
        table = self._table(target)
        with self._state:
            table.group.set_schema(shard, schema)
            _forget_decisions(table)

    def expects(self, target: TableName, shard: Shard, schema: TableSchema) -> None:
        """Record a shard's structure at its source, for a shard that has not appeared in the log yet."""
        table = self._table(target)
        with self._state:
            table.expected[shard] = schema

    def assume_catalog_schemas(self, source_id: str) -> None:
        """Record that a source's log has been applied: tables that did not appear in it are as at the source."""
        with self._state:
            self._applied_sources.add(source_id)
            for table in self._tables.values():
                for shard in [shard for shard in table.expected if shard.source_id == source_id]:
                    schema = table.expected.pop(shard)
                    member = table.group.members.get(shard)
                    if member is not None and member.schema is None and member.waiting is None:
                        table.group.set_schema(shard, schema)

    @property
    def heard(self) -> int:
        """Number of sources whose log has been applied up to its end at some point."""
        with self._state:
            return len(self._applied_sources)

    def opens(self, source_id: str) -> None:
        """Record that the shards of a source are registered where the writer continues."""
        with self._state:
            self._opened.add(source_id)

    @property
    def opened(self) -> int:
        """Number of sources whose shards are registered."""
        with self._state:
            return len(self._opened)

    def structures(self, target: TableName) -> dict[Shard, TableSchema | None]:
        """The shards of a merged table with their structures; None for an unknown one."""
        table = self._table(target)
        with self._state:
            return {shard: member.schema for shard, member in table.group.members.items()}

    def columns(self, target: TableName) -> Columns | None:
        """The columns of a merged table, as last recorded."""
        table = self._table(target)
        with self._state:
            return table.existing

    def remove_shard(self, target: TableName, shard: Shard) -> None:
        """Record that a shard was dropped, or renamed away."""
        table = self._table(target)
        with self._state:
            table.group.remove_shard(shard)

    def set_columns(self, target: TableName, existing: Columns) -> None:
        """Record the current columns of a merged table."""
        table = self._table(target)
        with self._state:
            table.existing = existing

    def ask(self, target: TableName, shard: Shard, waiting: Waiting, existing: Columns) -> Verdict:
        """Decide on a statement that a shard has reached; call it in the shard's turn.

        Args:
            existing: the merged table's columns.
        """
        table = self._table(target)
        with self._state:
            table.existing = existing
            table.group.waits(shard, waiting)
            lock, decided = self._lock(table, shard), table.decided_ahead.pop(str(shard), None)
            if lock is not None and decided is not None and self._overrides(lock, _statement_text(waiting), decided[1]):
                table.decided[lock.operations] = decided[0]
            action = _action(table, lock)
            others = tuple(_future(table, lock, other) for other in table.group.members if other != shard)
            if action is not Action.WAIT:
                # It is being executed: no other shard may release it.
                table.group.set_schema(shard, waiting.altered.before)
            return Verdict(action, others)

    def is_coordinating(self, target: TableName) -> bool:
        """Whether some shard waits."""
        table = self._table(target)
        with self._state:
            return bool(table.group.waiting)

    def is_waiting(self, target: TableName, shard: Shard) -> bool:
        """Whether a shard waits before a statement."""
        table = self._table(target)
        with self._state:
            return shard in table.group.waiting

    def released(self, source_id: str) -> dict[TableName, Position]:
        """The shards of a source that need not wait any longer, with the position at which each is paused."""
        with self._state:
            return {
                shard.name: waiting.position
                for table in self._tables.values()
                for shard, waiting in table.group.waiting.items()
                if shard.source_id == source_id and not self._waits(table, shard)
            }

    def locks(self) -> list[ShownLock]:
        """The unresolved locks: one for each waiting statement, by its owner."""
        with self._state:
            shown: dict[tuple[TableName, frozenset[Operation]], ShownLock] = {}
            for target, table in self._tables.items():
                for shard in table.group.waiting:
                    lock = self._lock(table, shard)
                    if lock is not None and _action(table, lock) is Action.WAIT:
                        shown.setdefault((target, lock.operations), _shown(target, lock, table.group.waiting))
            return list(shown.values())

    def decide(self, target: TableName, action: Action, owner: str) -> bool:
        """Override a lock: execute or skip its statement without waiting; False if the lock does not exist.

        Args:
            owner: the shard whose statement it is, as text.
        """
        locks = [shown.lock for shown in self.locks() if shown.target == target and str(shown.lock.owner) == owner]
        locks = [lock for lock in locks if self._overridable(lock)]
        with self._state:
            for lock in locks:
                self._tables[target].decided[lock.operations] = action
        return bool(locks)

    def begins(self) -> None:
        """Record that a worker starts that may change shards; it must call `ends`."""
        with self._state:
            self._active += 1

    def ends(self) -> None:
        """Record that a worker has ended."""
        with self._state:
            self._active -= 1

    def decide_ahead(
        self, target: TableName, action: Action, shards: Collection[str], statements: Collection[str]
    ) -> None:
        """Override statements before they are reached again: execute or skip them without waiting.

        Args:
            shards: all that were ready: which of them reaches the statement first this time is unknown.
            statements: as in a `ShownLock`.
        """
        table = self._table(target)
        with self._state:
            table.decided_ahead.update(dict.fromkeys(shards, (action, frozenset(statements))))

    def comes_to_rest(self, wait: Callable[[], object]) -> bool:
        """Whether a worker that has nothing to do may end: see `at_rest`. If not, it waits for shards of other sources.

        Args:
            wait: called if not; meanwhile, the worker does not count as active either.
        """
        self.ends()
        try:
            if self.at_rest():
                return True
            wait()
            return False
        finally:
            self.begins()

    def at_rest(self) -> bool:
        """Whether no worker is active and no shard can continue: waiting shards wait for statements still to come."""
        with self._state:
            waiting = [(table, shard) for table in self._tables.values() for shard in table.group.waiting]
            return not self._active and all(self._waits(table, shard) for table, shard in waiting)

    def _table(self, target: TableName) -> _Coordinated:
        with self._state:
            return self._tables.setdefault(target, _Coordinated())

    def _lock(self, table: _Coordinated, shard: Shard) -> Lock | None:
        assert table.existing is not None, "a waiting shard has recorded the columns"
        mode = self.mode or Mode.PESSIMISTIC
        return plan_lock(shard, table.group.members, table.existing, mode, self._at_once)

    def _overrides(self, lock: Lock, statement: str, decided: Collection[str]) -> bool:
        return statement in decided and self._overridable(lock)

    def _overridable(self, lock: Lock) -> bool:
        return self._at_once is None or all(operation.verb is not Verb.RENAME for operation in lock.operations)

    def _waits(self, table: _Coordinated, shard: Shard) -> bool:
        return _action(table, self._lock(table, shard)) is Action.WAIT


@dataclass(frozen=True, slots=True)
class ShardSides:
    """The coordination of each writer of the merged tables: their shards are at positions of their own.

    Attributes:
        sink: None without a sink.
    """

    silver: Coordination
    sink: Coordination | None = None


def _action(table: _Coordinated, lock: Lock | None) -> Action:
    return Action.EXEC if lock is None or lock.is_resolved else table.decided.get(lock.operations, Action.WAIT)


def _future(table: _Coordinated, lock: Lock | None, other: Shard) -> TableSchema | None:
    """The structure of another shard's rows, once all shards that wait with the same statement have executed it."""
    member = table.group.members[other]
    if member.waiting is None or lock is None or table.existing is None:
        return member.schema
    same = operations(member.waiting.altered, table.existing) == lock.operations
    return member.waiting.altered.after if same else member.schema


def _forget_decisions(table: _Coordinated) -> None:
    """A decision applies only to the shards that wait now: the same statement may occur again later."""
    if table.existing is not None and table.decided:
        current = {operations(waiting.altered, table.existing) for waiting in table.group.waiting.values()}
        table.decided = {effect: action for effect, action in table.decided.items() if effect in current}


def _shown(target: TableName, lock: Lock, waiting: Mapping[Shard, Waiting]) -> ShownLock:
    texts = [_statement_text(waiting[shard]) for shard in (lock.owner, *lock.ready) if shard in waiting]
    return ShownLock(target, tuple(dict.fromkeys(texts)), lock)


def _statement_text(waiting: Waiting) -> str:
    return " ".join((waiting.text or JOINS).split())
