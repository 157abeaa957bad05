"""From the changes of a slice to the dispatcher: compacted where rows cannot meet, else one by one in log order."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from dmdelta.logging import get_logger
from dmdelta.sink.change import Change, Shape
from dmdelta.sink.compactor import compact
from dmdelta.sink.dispatcher import Dispatcher
from dmdelta.sink.net_rows import NetRows, net_rows
from dmdelta.sink.reading import TableChanges

log = get_logger(__name__)
MANY = 1000
"""Fewer changes of a table share transactions with other tables'."""


@dataclass(slots=True)
class SliceExecution:
    """
    Attributes:
        compacts: changes of a row become one where that is possible.
        ordered: changes of different tables may meet: foreign keys are checked.
        merges: rows that are treated alike go into one statement.
        whole: tables whose changes stay in one order, and the key that these have.
    """

    dispatcher: Dispatcher
    compacts: bool
    ordered: bool
    merges: bool = True
    whole: dict[str, str] = field(default_factory=dict)

    def execute(self, tables: Sequence[Sequence[TableChanges]]) -> None:
        """Hand over all changes of a slice, given by table of the target."""
        for group in tables:
            self._keep_whole(group)
        if self.ordered:
            self._one_by_one([one for group in tables for one in group])
            return
        for group in tables:
            apart = _is_compactable(group) and group[0].plan.shape.table not in self.whole
            if apart and self._side_by_side(group):
                continue
            if apart and self.compacts:
                self._compacted(group)
            else:
                self._one_by_one(group)

    def _keep_whole(self, group: Sequence[TableChanges]) -> None:
        """Note a table whose changes cannot be told apart by their keys; those under way are waited for."""
        plan = group[0].plan
        table, key = plan.shape.table, plan.table_key
        why = next((one.plan.whole for one in group if one.plan.whole), "")
        if not why and not all(one.ascii for one in group):
            why = "its keys hold other text than ASCII, under a collation that may not tell it apart"
        if why and self.whole.get(table) != key:
            log.warning("changes of a table stay in one order", table=table, why=why)
            self.dispatcher.drain(self.dispatcher.snapshots.newest_pushed)
            self.whole[table] = key

    def _side_by_side(self, group: Sequence[TableChanges]) -> bool:
        """Hand over many rows that do not meet as columns; False where they are few, or do meet."""
        rows = _many(group) if self.merges else None
        if rows is None or (len(rows) < len(rows.columns) and not self.compacts):
            return False
        self.dispatcher.dispatch_rows(group[0].plan.shape, rows)
        return True

    def _compacted(self, group: Sequence[TableChanges]) -> None:
        shape = group[0].plan.shape
        found = compact([change for _, change in _merged(group)])
        dispatch = self.dispatcher.dispatch
        for change in found.rows:
            dispatch(shape, (change,))
        for changes in found.groups:
            dispatch(shape, changes)

    def _one_by_one(self, group: Sequence[TableChanges]) -> None:
        for shape, change in _merged(group):
            key = self.whole.get(shape.table, "")
            self.dispatcher.dispatch(shape, (change._replace(keys=(key,)) if key else change,))


def _merged(group: Sequence[TableChanges]) -> list[tuple[Shape, Change]]:
    """All changes with their shapes, in the log's order."""
    if len(group) == 1:
        shape = group[0].plan.shape
        return [(shape, change) for _, change in group[0].changes()]
    placed = [(at, change.events[0][1], one.plan.shape, change) for one in group for at, change in one.changes()]
    placed.sort(key=lambda one: one[:2])
    return [(shape, change) for _, _, shape, change in placed]


def _many(group: Sequence[TableChanges]) -> NetRows | None:
    """The net rows of a table with so many changes that they are worth being handled side by side."""
    columns = group[0].columns
    if len(group) > 1 or columns is None or len(columns) < MANY or not group[0].plan.shape.assigned:
        return None
    return net_rows(columns)


def _is_compactable(group: Sequence[TableChanges]) -> bool:
    shape = group[0].plan.shape
    if shape.keyless or any(one.plan.shape != shape for one in group):
        return False
    return all(one.columns is None or one.columns.whole for one in group)
