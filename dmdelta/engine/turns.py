"""Which tables are written side by side, which one after the other, and which take so long that others go on."""

import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, wait

from dmdelta.model.schema import TableName
from dmdelta.silver.survey import TableEvents
from dmdelta.silver.target import Target

SLOW_SECONDS = 10.0
"""How long the last turns of a range are waited for, once the others are done and more of the log is there."""
_LOOK_SECONDS = 0.5


def plan_turns(
    groups: Sequence[Sequence[TableEvents]], target: Callable[[TableName], Target]
) -> list[list[Sequence[TableEvents]]]:
    """Groups of tables that go on side by side; those of one merged table are together: they write it in turns."""
    turns: dict[object, list[Sequence[TableEvents]]] = {}
    for group in groups:
        merged = [place.route.name for table in group if (place := target(table.name)).merged]
        turns.setdefault(merged[0] if merged else id(group), []).append(group)
    return list(turns.values())


def names_of(turn: Sequence[Sequence[TableEvents]]) -> frozenset[TableName]:
    """The tables of a turn."""
    return frozenset(table.name for group in turn for table in group)


def await_turns(running: Collection[Future[None]], room: int, more: Callable[[], bool]) -> set[Future[None]]:
    """Wait for turns to end; those that are slow, if others would wait for them alone.

    Args:
        room: so many may be left behind.
        more: says whether anybody waits.
    """
    unfinished, since = set(running), time.monotonic()
    while unfinished:
        _, unfinished = wait(unfinished, timeout=_LOOK_SECONDS)
        if len(unfinished) > room:
            since = time.monotonic()
        elif time.monotonic() - since >= SLOW_SECONDS and more():
            break
    return unfinished
