"""Decides which changes of a slice are written in safe mode."""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from dmdelta.logging import get_logger
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.sink.plan.reload import AdHocState
from dmdelta.sink.plan.safe_mode import SafeMode
from dmdelta.sink.read.change_reader import TableChanges
from dmdelta.sink.read.slices import Slice

log = get_logger(__name__)
Group = Sequence[TableChanges]


@dataclass(slots=True)
class Caution:
    """
    Attributes:
        ordered: the changes of different tables depend on each other.
        fresh: tables of the target on which nothing was executed before this run.
        read_at: where the log resumes for tables that a full load has read at one exact position.
    """

    safe: SafeMode
    ordered: bool
    fresh: Collection[TableName]
    read_at: Mapping[TableName, Position] = field(default_factory=dict)
    _warned: set[str] = field(default_factory=set)
    _began: float = field(default_factory=time.monotonic)

    def is_unknown(self, position: Position) -> bool:
        """Whether an earlier run may have executed changes from `position` on without a record."""
        return self.safe.is_unknown(position, time.monotonic() - self._began)

    def divide(
        self,
        part: Slice,
        changes: list[list[TableChanges]],
        safe_until: Position | None,
        ad_hoc: tuple[AdHocState, Mapping[TableName, int]],
    ) -> tuple[list[list[TableChanges]], list[list[TableChanges]]]:
        """Divide a slice into plain changes and those for safe mode, by table of the target.

        Args:
            safe_until: a full load may have seen the changes before it.
            ad_hoc: the ad-hoc snapshots, and the newest one that the target has of each table.
        """
        repeated = self.safe.is_on(part.begin, time.monotonic() - self._began)
        reads = any(Op.READ.value in rows.ops for rows in part.rows)
        loaded = safe_until is not None and part.begin < safe_until
        state, done = ad_hoc
        awaiting = [
            group for group in changes if any(state.is_in_doubt(one.plan.source, part.begin, done) for one in group)
        ]
        careful = [
            group
            for group in changes
            if group in awaiting or self._may_be_executed(group, repeated=repeated, reads=reads, loaded=loaded)
        ]
        if careful and self.ordered:
            careful = changes
        if not reads:
            self.warn_of_keyless([group for group in careful if group not in awaiting])
        return [group for group in changes if group not in careful], careful

    def _may_be_executed(self, group: Group, *, repeated: bool, reads: bool, loaded: bool) -> bool:
        """Whether changes of a table may already be in the target."""
        plan = group[0].plan
        if any(one.moves_unknown for one in group):
            return True
        repeated, keyless = repeated and plan.schema.name not in self.fresh, plan.shape.keyless
        if reads:
            # A unique value that moves meanwhile may be in two chunks, and a child may be read before its parent.
            return repeated or self.ordered or (len(plan.keys) > 1 and not keyless)
        if all(one.plan.source in self.read_at for one in group):
            loaded = False
        return repeated or (loaded and not (keyless and plan.schema.name in self.fresh))

    def warn_of_keyless(self, careful: Sequence[Group]) -> None:
        """Safe mode needs keys to find rows: warn once for each table without one."""
        for table in {group[0].plan.shape.table for group in careful if group[0].plan.shape.keyless} - self._warned:
            log.warning("safe mode on a table without a key: rows may be duplicated", table=table)
            self._warned.add(table)
