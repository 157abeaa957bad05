"""The state of ad-hoc snapshots: the thread that takes them reports it, the sink follows it."""

import threading
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.sink.plan.reload import AdHocState, Reload

WAIT_SECONDS = 0.5


class ReloadFeed:
    """The state of a source's ad-hoc snapshots. Thread-safe: snapshots change it, the sink reads it."""

    def __init__(self, state: AdHocState | None = None) -> None:
        self._state = state or AdHocState()
        self._changed = threading.Condition()
        self._closed = False

    @property
    def state(self) -> AdHocState:
        with self._changed:
            return self._state

    def plan(self, tables: Collection[TableName]) -> None:
        """A snapshot of tables is about to start. Called before its position is determined."""
        with self._changed:
            self._set(replace(self._state, planning=True, awaited=self._state.awaited.union(tables)))

    def begin(self, tables: Collection[TableName], begin: Position, missing: Collection[TableName] = ()) -> None:
        """A snapshot reads tables; every change that it may miss is in the log from `begin` on.

        Args:
            missing: planned tables that do not exist.
        """
        with self._changed:
            awaited = self._state.awaited.union(tables).difference(missing)
            self._set(replace(self._state, planning=False, awaited=awaited, begin=begin, reading=frozenset(tables)))

    def end(self, reloads: Iterable[Reload], requeued: Collection[TableName] = ()) -> None:
        """The snapshot is finished; `requeued`: its tables that a later one reads again."""
        with self._changed:
            state = self._state
            awaited = state.awaited.difference(state.reading).union(requeued)
            self._set(AdHocState(awaited, reloads=(*state.reloads, *reloads)))

    def enter_epoch(self, epoch: int, rest: Callable[[Position, int], Position | None]) -> None:
        """The sink continues in the log of an epoch.

        Args:
            rest: as `AdHocState.in_epoch`.
        """
        with self._changed:
            if self._state.overlaps_before(epoch):
                self._set(self._state.in_epoch(epoch, rest))

    def close(self) -> None:
        """No snapshot continues in this run."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def wait(self) -> bool:
        """Wait until the state changes, or for half a second; False if it will not change in this run."""
        with self._changed:
            if self._closed:
                return False
            self._changed.wait(WAIT_SECONDS)
            return True

    def _set(self, state: AdHocState) -> None:
        self._state = state
        self._changed.notify_all()
