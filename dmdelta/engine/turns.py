"""Which tables are written side by side, and which one after the other."""

from collections.abc import Callable, Sequence

from dmdelta.model.schema import TableName
from dmdelta.silver.survey import TableEvents
from dmdelta.silver.target import Target


def plan_turns(
    groups: Sequence[Sequence[TableEvents]], target: Callable[[TableName], Target]
) -> list[list[Sequence[TableEvents]]]:
    """Groups of tables that go on side by side; those of one merged table are together: they write it in turns."""
    turns: dict[object, list[Sequence[TableEvents]]] = {}
    for group in groups:
        merged = [place.route.name for table in group if (place := target(table.name)).merged]
        turns.setdefault(merged[0] if merged else id(group), []).append(group)
    return list(turns.values())
