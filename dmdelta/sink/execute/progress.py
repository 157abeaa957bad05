"""How far a sink has come: the exit point, the tables with changes, and GTID sets, which a checkpoint needs."""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.sink.plan.checkpoint import AboutTo, Checkpoint, PushedPoint, plan_checkpoint


@dataclass(slots=True)
class Progress:
    """Written by the sink's thread, read by the flusher's.

    Attributes:
        exit_point: safe mode's exit point: nothing after it was handed to a worker, and none of it is unproven.
        tables: the points of the tables with changes: certain since an earlier checkpoint.
        held: the shards whose changes wait for other shards, with the position of the statement that they wait at.
    """

    exit_point: Position | None = None
    tables: dict[TableName, Position] = field(default_factory=dict)
    held: dict[TableName, Position] = field(default_factory=dict)
    _sources: dict[str, set[TableName]] = field(default_factory=dict)
    _gtids: list[tuple[Position, str]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def raise_exit_point(self, position: Position) -> None:
        """What lies before `position` is handed to the workers next."""
        if self.exit_point is None or position > self.exit_point:
            self.exit_point = position

    def add_table(self, source: TableName, target: str, begin: Position) -> None:
        """A source table has changes from `begin` on, which are written to a table of the target."""
        with self._lock:
            self.tables.setdefault(source, begin)
            self._sources.setdefault(target, set()).add(source)

    def hold(self, source: TableName, at: Position) -> None:
        """Nothing of a shard from `at` on is executed until it is released."""
        with self._lock:
            self.held[source] = at

    def release(self, source: TableName) -> None:
        """A shard has everything that was handed over of the other tables."""
        with self._lock:
            self.held.pop(source, None)

    def known_tables(self) -> dict[TableName, Position]:
        """A copy of the table points."""
        with self._lock:
            return dict(self.tables)

    def sources(self, targets: Iterable[str]) -> set[TableName]:
        """The source tables of tables of the target."""
        return {source for target in targets for source in self._sources.get(target, ())}

    def add_gtids(self, position: Position, gtid_set: str) -> None:
        """The transactions before a position: the end of a landed batch, or a stored checkpoint."""
        with self._lock:
            self._gtids = [one for one in self._gtids if one[0] < position] + [(position, gtid_set)]

    def checkpoint(
        self,
        point: PushedPoint,
        reason: str = "interval",
        *,
        tables: Mapping[TableName, Position] | None = None,
        about_to: AboutTo | None = None,
    ) -> Checkpoint | None:
        """The checkpoint at a point; None before the end of the first source transaction."""
        with self._lock:
            exit_point = self.exit_point
            known = dict(self.tables) if tables is None else tables
            planned = plan_checkpoint(point, exit_point, known, reason, held=self.held)
            if planned is None or planned.exit_point is None:
                return None
            gtid_set, exit_gtid_set = self._before(planned.position), self._before(planned.exit_point)
            self._gtids = [one for one in self._gtids if one[0] > planned.position or one[1] == gtid_set]
        return replace(planned, gtid_set=gtid_set, exit_gtid_set=exit_gtid_set, about_to=about_to)

    def _before(self, position: Position) -> str | None:
        return next((text for at, text in reversed(self._gtids) if at <= position), None)
