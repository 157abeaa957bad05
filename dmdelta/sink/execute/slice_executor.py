"""Executes the changes of a slice: compacted where rows are independent, else one by one in log order."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from dmdelta.logging import get_logger
from dmdelta.sink.change import Change
from dmdelta.sink.execute.columnar_compactor import NetRows, net_rows
from dmdelta.sink.execute.compactor import compact
from dmdelta.sink.execute.dispatcher import Dispatcher
from dmdelta.sink.plan.table_mapping import TablePlan
from dmdelta.sink.read.change_reader import TableChanges

log = get_logger(__name__)
MANY = 1000
"""Number of changes from which a table is processed in columnar form; smaller ones share transactions."""


@dataclass(slots=True)
class SliceExecution:
    """Executes slices.

    Attributes:
        compacts: changes of a row are merged where possible.
        ordered: changes of different tables may depend on each other: foreign keys are checked.
        merges: similar rows are merged into one statement.
        whole: the keys of tables whose changes stay in one order: these changes have no other key. Tables that checked
            foreign keys connect have one such key, so they keep their order together.
    """

    dispatcher: Dispatcher
    compacts: bool
    ordered: bool
    merges: bool = True
    whole: set[str] = field(default_factory=set)

    def execute(self, tables: Sequence[Sequence[TableChanges]]) -> None:
        """Dispatch all changes of a slice, grouped by target table."""
        for group in tables:
            self._mark_ordered(group)
        if self.ordered:
            self._one_by_one([one for group in tables for one in group])
            return
        for group in tables:
            independent = _is_compactable(group) and group[0].plan.table_key not in self.whole
            if independent and self._columnar(group):
                continue
            if independent and self.compacts:
                self._compacted(group)
            else:
                self._one_by_one(group)

    def _mark_ordered(self, group: Sequence[TableChanges]) -> None:
        """Mark a table whose changes cannot be distinguished by key; wait for those in flight."""
        plan = group[0].plan
        why = next((one.plan.whole for one in group if one.plan.whole), "")
        if not why and not all(one.ascii for one in group):
            why = "its keys contain non-ASCII text under a collation that may treat different texts as equal"
        if not why and any(one.lacks_keys for one in group):
            why = "its row images contain only some of the columns (binlog_row_image), and it has several keys"
        if why and plan.table_key not in self.whole:
            log.warning("table keeps its changes in order", table=plan.shape.table, why=why)
            self.dispatcher.drain(self.dispatcher.snapshots.newest_pushed)
            self.whole.add(plan.table_key)

    def _columnar(self, group: Sequence[TableChanges]) -> bool:
        """Dispatch many independent rows in columnar form; False if they are few, or depend on each other."""
        rows = _columnar_rows(group) if self.merges else None
        if rows is None or (len(rows) < len(rows.columns) and not self.compacts):
            return False
        self.dispatcher.dispatch_rows(group[0].plan.shape, rows)
        return True

    def _compacted(self, group: Sequence[TableChanges]) -> None:
        shape = group[0].plan.shape
        compacted = compact([change for _, change in _merged(group)])
        dispatch = self.dispatcher.dispatch
        for change in compacted.rows:
            dispatch(shape, (change,))
        for changes in compacted.groups:
            dispatch(shape, changes)

    def _one_by_one(self, group: Sequence[TableChanges]) -> None:
        for plan, change in _merged(group):
            key = plan.table_key
            self.dispatcher.dispatch(plan.shape, (change._replace(keys=(key,)) if key in self.whole else change,))


def _merged(group: Sequence[TableChanges]) -> list[tuple[TablePlan, Change]]:
    """All changes with the plans of their tables, in log order."""
    if len(group) == 1:
        plan = group[0].plan
        return [(plan, change) for _, change in group[0].changes()]
    placed = [((at, *change.events[0]), one.plan, change) for one in group for at, change in one.changes()]
    placed.sort(key=itemgetter(0))
    return [(plan, change) for _, plan, change in placed]


def _columnar_rows(group: Sequence[TableChanges]) -> NetRows | None:
    """The net rows of a table with enough changes for the columnar form."""
    columns = group[0].columns
    if len(group) > 1 or columns is None or len(columns) < MANY or not group[0].plan.shape.assigned:
        return None
    return net_rows(columns)


def _is_compactable(group: Sequence[TableChanges]) -> bool:
    shape = group[0].plan.shape
    if shape.keyless or any(one.plan.shape != shape for one in group):
        return False
    return all(one.columns is None or one.columns.whole for one in group)
