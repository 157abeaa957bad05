"""The sharding groups of a running task, and its locks: shared by all of its sources' appliers."""

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.sharding.group import Shard, ShardingGroup, Waiting
from dmdelta.sharding.lock import Lock, Mode, plan_lock
from dmdelta.sharding.operations import Columns, Operation, operations

JOINS = "(the columns that it begins with)"
"""What a shard waits with that no statement has led there."""


class Action(str, Enum):
    """What becomes of a statement on a merged table."""

    WAIT = "wait"
    """The shard is held ahead of it."""
    EXEC = "exec"
    """The merged table follows it now."""
    SKIP = "skip"
    """The merged table stays as it is: somebody said so."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """
    Attributes:
        others: the structures that the other shards' rows have from now on; None for one that nobody knows.
    """

    action: Action
    others: tuple[TableSchema | None, ...] = ()


@dataclass(frozen=True, slots=True)
class ShownLock:
    """A lock as people see it.

    Attributes:
        target: schema and table of the merged table.
        statements: of the shards that wait, the owner's first; a text once.
        ready, remain, conflicts: as of `Lock`.
    """

    target: TableName
    statements: tuple[str, ...]
    lock: Lock


@dataclass(slots=True)
class _Coordinated:
    """What is known of one merged table.

    Attributes:
        there: its columns, as the last one saw them who asked.
        expected: structures of shards of which the log has told nothing yet.
        decided: what somebody decided about a statement that does this.
        decided_ahead: what somebody decided about statements, if a shard, as text, waits with one of them next.
    """

    group: ShardingGroup = field(default_factory=ShardingGroup)
    writing: threading.RLock = field(default_factory=threading.RLock)
    there: Columns | None = None
    expected: dict[Shard, TableSchema] = field(default_factory=dict)
    decided: dict[frozenset[Operation], Action] = field(default_factory=dict)
    decided_ahead: dict[str, tuple[Action, frozenset[str]]] = field(default_factory=dict)
    opened: bool = False


class Coordination:
    """All groups of a task's run. Every method may be called from any thread."""

    def __init__(self, mode: Mode | None = None) -> None:
        """
        Args:
            mode: None: shards are merged as they are, and a statement that changes the merged table stops its shard.
        """
        self.mode = mode
        self._state = threading.Lock()
        self._tables: dict[TableName, _Coordinated] = {}
        self._busy = 0
        self._heard: set[str] = set()

    @contextmanager
    def turn(self, target: TableName) -> Iterator[bool]:
        """The right to write a merged table; True for the first turn of a run."""
        table = self._table(target)
        with table.writing:
            first, table.opened = not table.opened, True
            yield first

    def stands(self, target: TableName, shard: Shard, schema: TableSchema | None) -> None:
        """Say with which structure a shard goes on."""
        table = self._table(target)
        with self._state:
            table.group.stands(shard, schema)
            _forget_decisions(table)

    def expects(self, target: TableName, shard: Shard, schema: TableSchema) -> None:
        """Say which structure a shard has at its source, of which the log has told nothing yet."""
        table = self._table(target)
        with self._state:
            table.expected[shard] = schema

    def heard_all(self, source_id: str) -> None:
        """Say that a source's log has been applied: of whom it told nothing is as it is at the source."""
        with self._state:
            self._heard.add(source_id)
            for table in self._tables.values():
                for shard in [shard for shard in table.expected if shard.source_id == source_id]:
                    schema = table.expected.pop(shard)
                    member = table.group.members.get(shard)
                    if member is not None and member.schema is None and member.waiting is None:
                        table.group.stands(shard, schema)

    @property
    def heard(self) -> int:
        """Sources whose log has been applied once, up to its end of the time."""
        with self._state:
            return len(self._heard)

    def leaves(self, target: TableName, shard: Shard) -> None:
        """Say that a shard was dropped."""
        table = self._table(target)
        with self._state:
            table.group.leaves(shard)

    def sees(self, target: TableName, there: Columns) -> None:
        """Say which columns a merged table has now."""
        table = self._table(target)
        with self._state:
            table.there = there

    def ask(self, target: TableName, shard: Shard, waiting: Waiting, there: Columns) -> Verdict:
        """What becomes of a statement that a shard has come to; asked in the shard's turn.

        Args:
            there: the merged table's columns.
        """
        table = self._table(target)
        with self._state:
            table.there = there
            table.group.waits(shard, waiting)
            lock, decided = self._lock(table, shard), table.decided_ahead.pop(str(shard), None)
            if lock is not None and decided is not None and _words(waiting) in decided[1]:
                table.decided[lock.operations] = decided[0]
            action = _action(table, lock)
            others = tuple(_future(table, lock, other) for other in table.group.members if other != shard)
            if action is not Action.WAIT:
                # It is on its way: nobody else is to release it.
                table.group.stands(shard, waiting.altered.before)
            return Verdict(action, others)

    def is_coordinating(self, target: TableName) -> bool:
        """Some shard waits."""
        table = self._table(target)
        with self._state:
            return bool(table.group.waiting)

    def released(self, source_id: str) -> dict[TableName, Position]:
        """The shards of a source that need not wait any longer, by where they are held."""
        with self._state:
            return {
                shard.name: waiting.position
                for table in self._tables.values()
                for shard, waiting in table.group.waiting.items()
                if shard.source_id == source_id and not self._waits(table, shard)
            }

    def locks(self) -> list[ShownLock]:
        """The locks that are not resolved: one for each statement that waits, by its owner."""
        with self._state:
            shown: dict[tuple[TableName, frozenset[Operation]], ShownLock] = {}
            for target, table in self._tables.items():
                for shard in table.group.waiting:
                    lock = self._lock(table, shard)
                    if lock is not None and _action(table, lock) is Action.WAIT:
                        shown.setdefault((target, lock.operations), _shown(target, lock, table.group.waiting))
            return list(shown.values())

    def decide(self, target: TableName, action: Action, owner: str) -> bool:
        """Have a lock's statement followed or left out without waiting; False if there is no such lock.

        Args:
            owner: the shard whose statement is meant, as text.
        """
        found = [shown.lock for shown in self.locks() if shown.target == target and str(shown.lock.owner) == owner]
        with self._state:
            for lock in found:
                self._tables[target].decided[lock.operations] = action
        return bool(found)

    def begins(self) -> None:
        """Somebody is at work who may move shards, until he says that he ends."""
        with self._state:
            self._busy += 1

    def ends(self) -> None:
        """Who began is done."""
        with self._state:
            self._busy -= 1

    def decide_ahead(
        self, target: TableName, action: Action, shards: Collection[str], statements: Collection[str]
    ) -> None:
        """Have statements that shards waited with, once they come to them again, followed or left out without waiting.

        Args:
            shards: all that were ready: which of them comes first this time, nobody knows.
            statements: as a `ShownLock` has them.
        """
        table = self._table(target)
        with self._state:
            table.decided_ahead.update(dict.fromkeys(shards, (action, frozenset(statements))))

    @contextmanager
    def working(self) -> Iterator[None]:
        """Somebody is at work meanwhile."""
        self.begins()
        try:
            yield
        finally:
            self.ends()

    def at_rest(self) -> bool:
        """Nobody is at work, and no shard can go on: what waits now waits for statements that are still to come."""
        with self._state:
            waiting = [(table, shard) for table in self._tables.values() for shard in table.group.waiting]
            return not self._busy and all(self._waits(table, shard) for table, shard in waiting)

    def _table(self, target: TableName) -> _Coordinated:
        with self._state:
            return self._tables.setdefault(target, _Coordinated())

    def _lock(self, table: _Coordinated, shard: Shard) -> Lock | None:
        assert table.there is not None, "who waits has said what is there"
        return plan_lock(shard, table.group.members, table.there, self.mode or Mode.PESSIMISTIC)

    def _waits(self, table: _Coordinated, shard: Shard) -> bool:
        return _action(table, self._lock(table, shard)) is Action.WAIT


def _action(table: _Coordinated, lock: Lock | None) -> Action:
    return Action.EXEC if lock is None or lock.is_resolved else table.decided.get(lock.operations, Action.WAIT)


def _future(table: _Coordinated, lock: Lock | None, other: Shard) -> TableSchema | None:
    """The structure of another shard's rows, once all have passed that wait with the same."""
    member = table.group.members[other]
    if member.waiting is None or lock is None or table.there is None:
        return member.schema
    same = operations(member.waiting.altered, table.there) == lock.operations
    return member.waiting.altered.after if same else member.schema


def _forget_decisions(table: _Coordinated) -> None:
    """A decision is for those who wait now: the same may come again another day."""
    if table.there is not None and table.decided:
        meant = {operations(waiting.altered, table.there) for waiting in table.group.waiting.values()}
        table.decided = {found: action for found, action in table.decided.items() if found in meant}


def _shown(target: TableName, lock: Lock, waiting: Mapping[Shard, Waiting]) -> ShownLock:
    texts = [_words(waiting[shard]) for shard in (lock.owner, *lock.ready) if shard in waiting]
    return ShownLock(target, tuple(dict.fromkeys(texts)), lock)


def _words(waiting: Waiting) -> str:
    return " ".join((waiting.text or JOINS).split())
