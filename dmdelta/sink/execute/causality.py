"""Causality: determines which changes must stay in order, so that all others can run in parallel.

Each change has keys: the values of its row's primary key and of every unique key, before and after. Keys of one change
map to one root (DM's relation map), and each root has one worker. A change whose keys belong to two workers conflicts:
then every queue is drained and the map is reset. Keys of executed jobs are removed by generation, so that memory is
bounded by the jobs in flight, with and without conflicts.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class CausalityCounts:
    """Keys added and purged since the start."""

    added: int = 0
    purged: int = 0
    resets: int = 0

    @property
    def size(self) -> int:
        return self.added - self.purged


class Causality:
    """The relation map of one source. Not thread-safe."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._newest: dict[str, str] = {}
        self._older: deque[tuple[int, dict[str, str]]] = deque()
        self.counts = CausalityCounts()

    @property
    def relations(self) -> Mapping[str, str]:
        """Key → root, of all jobs that may not have been executed yet."""
        relations: dict[str, str] = {}
        for _, generation in self._older:
            relations.update(generation)
        return {**relations, **self._newest}

    def worker_of(self, root: str) -> int:
        return hash(root) % self._workers

    def add(self, keys: Sequence[str]) -> int | None:
        """The worker for a change with these keys, the row's own key first; None: they conflict, nothing is added."""
        root: str | None = None
        for key in keys:
            known = self._newest.get(key) or self._older_root(key)
            if known is None or known == root:
                continue
            if root is not None and self.worker_of(known) != self.worker_of(root):
                return None
            root = root or known
        root = root or keys[0]
        newest = self._newest
        before = len(newest)
        for key in keys:
            newest[key] = root
        self.counts.added += len(newest) - before
        return hash(root) % self._workers

    def place(self, keys: Sequence[str]) -> list[int]:
        """The workers for many changes with one key each: such changes never conflict."""
        generations = (self._newest, *(generation for _, generation in self._older))
        roots = keys
        if not all(generation.keys().isdisjoint(keys) for generation in generations):
            roots = [self._newest.get(key) or self._older_root(key) or key for key in keys]
        before = len(self._newest)
        self._newest.update(zip(keys, roots, strict=True))
        self.counts.added += len(self._newest) - before
        workers = self._workers
        return [hash(root) % workers for root in roots]

    def rotate(self, ordinal: int) -> None:
        """Start a new generation: the current one holds the jobs up to `ordinal`."""
        if self._newest:
            self._older.append((ordinal, self._newest))
            self._newest = {}

    def purge(self, executed: int) -> int:
        """Forget the keys of the jobs up to `executed`; returns their number."""
        purged = 0
        while self._older and self._older[0][0] <= executed:
            purged += len(self._older.popleft()[1])
        self.counts.purged += purged
        return purged

    def reset(self) -> None:
        """Forget all keys: every job has been executed."""
        self.counts.purged = self.counts.added
        self.counts.resets += 1
        self._newest = {}
        self._older.clear()

    def _older_root(self, key: str) -> str | None:
        for _, generation in reversed(self._older):
            if (root := generation.get(key)) is not None:
                return root
        return None
