"""Causality: determines which changes must stay in order, so that all others can run in parallel.

Each change has keys: the values of its row's primary key and of every unique key, before and after. Keys of one change
map to one root (DM's relation map), and each root has one worker. A change whose keys belong to two workers conflicts:
then every queue is drained and the map is reset. Keys of executed jobs are purged by generation, so that memory is
bounded by the jobs in flight, with and without conflicts.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Generations: TypeAlias = tuple[tuple[int, dict[str, str]], ...]


@dataclass(slots=True)
class CausalityCounts:
    """Since the start; a key counts once in each generation.

    Attributes:
        added: keys added to the map.
        purged: keys removed because their jobs had been executed.
        reset: keys removed by resets.
        resets: how often the map was reset.
    """

    added: int = 0
    purged: int = 0
    reset: int = 0
    resets: int = 0

    @property
    def size(self) -> int:
        """Keys in the map."""
        return self.added - self.purged - self.reset


class Causality:
    """The relation map of one source. One thread adds keys; any other may purge meanwhile.

    Older generations never change and are replaced as a whole, under the lock. Adding takes no lock: if a generation is
    purged meanwhile, its jobs have been executed, so that following its relations once more is harmless.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._newest: dict[str, str] = {}
        self._older: Generations = ()
        self._lock = threading.Lock()
        self.counts = CausalityCounts()

    def worker_of(self, root: str) -> int:
        return hash(root) % self._workers

    def add(self, keys: Sequence[str]) -> int | None:
        """The worker for a change with these keys, the row's own key first; None: they conflict, nothing is added."""
        root: str | None = None
        newest, older = self._newest, self._older
        for key in keys:
            known = newest.get(key) or _root_in(older, key)
            if known is None or known == root:
                continue
            if root is not None and self.worker_of(known) != self.worker_of(root):
                return None
            root = root or known
        root = root or keys[0]
        before = len(newest)
        for key in keys:
            newest[key] = root
        self.counts.added += len(newest) - before
        return hash(root) % self._workers

    def place(self, keys: Sequence[str]) -> list[int]:
        """The workers for many changes with one key each: such changes never conflict."""
        newest, older = self._newest, self._older
        generations = (newest, *(generation for _, generation in older))
        roots = keys
        if not all(generation.keys().isdisjoint(keys) for generation in generations):
            roots = [newest.get(key) or _root_in(older, key) or key for key in keys]
        before = len(newest)
        newest.update(zip(keys, roots, strict=True))
        self.counts.added += len(newest) - before
        workers = self._workers
        return [hash(root) % workers for root in roots]

    def rotate(self, ordinal: int) -> None:
        """Start a new generation: the current one holds the jobs up to `ordinal`, which increases from call to call."""
        if self._newest:
            with self._lock:
                self._older = (*self._older, (ordinal, self._newest))
            self._newest = {}

    def purge(self, executed: int) -> int:
        """Forget the keys of the jobs up to `executed`; returns their number. Any thread may call it."""
        with self._lock:
            purged = _size(self._older, executed)
            self._older = tuple(one for one in self._older if one[0] > executed)
            self.counts.purged += purged
        return purged

    def waiting(self, executed: int) -> int:
        """The number of keys that `purge(executed)` would forget. Any thread may call it."""
        return _size(self._older, executed)

    def reset(self) -> int:
        """Forget all keys, because every job has been executed; returns their number."""
        with self._lock:
            forgotten = self.counts.size
            self._older = ()
            self.counts.reset += forgotten
            self.counts.resets += 1
        self._newest = {}
        return forgotten


def _root_in(generations: Generations, key: str) -> str | None:
    """The newest root of a key."""
    for _, generation in reversed(generations):
        if (root := generation.get(key)) is not None:
            return root
    return None


def _size(generations: Generations, executed: int) -> int:
    return sum(len(generation) for ordinal, generation in generations if ordinal <= executed)
