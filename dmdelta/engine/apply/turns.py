"""Schedules which tables are written in parallel, which one after the other, and which are slow enough to run late."""

import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, wait

from dmdelta.model.schema import TableName
from dmdelta.silver.apply.renames import plan_groups
from dmdelta.silver.schema.range_profile import TableEvents
from dmdelta.silver.table.target import Target

SLOW_SECONDS = 10.0
"""How long to wait for the last turns of a range, once the others are done and more of the log is available."""
_POLL_SECONDS = 0.5


def plan_turns(
    tables: Sequence[TableEvents], target: Callable[[TableName], Target]
) -> list[list[Sequence[TableEvents]]]:
    """The turns of a range: they run in parallel, the groups of one turn one after the other.

    A group are the tables that a statement of the range renames into each other. The shards of a merged table share a
    turn: they write the same silver table.
    """
    turns: dict[object, list[Sequence[TableEvents]]] = {}
    for group in plan_groups(tables):
        merged = [place.route.name for table in group if (place := target(table.name)).merged]
        turns.setdefault(merged[0] if merged else id(group), []).append(group)
    return list(turns.values())


def renames_any(tables: Sequence[TableEvents], names: Collection[TableName]) -> bool:
    """Whether a statement of the range renames one of `names` into another table."""
    return any(len(group) > 1 and not names_of([group]).isdisjoint(names) for group in plan_groups(tables))


def names_of(turn: Sequence[Sequence[TableEvents]]) -> frozenset[TableName]:
    """The tables of a turn."""
    return frozenset(table.name for group in turn for table in group)


def await_turns(running: Collection[Future[None]], max_slow: int, has_backlog: Callable[[], bool]) -> set[Future[None]]:
    """Wait for turns to end; returns the slow ones once the other tables would wait only for them.

    Args:
        max_slow: maximum number of slow turns.
        has_backlog: whether more of the log is available.
    """
    unfinished, since = set(running), time.monotonic()
    while unfinished:
        _, unfinished = wait(unfinished, timeout=_POLL_SECONDS)
        if len(unfinished) > max_slow:
            since = time.monotonic()
        elif time.monotonic() - since >= SLOW_SECONDS and has_backlog():
            break
    return unfinished
