"""Determines which turns could start now, from the states of the tables."""

import time
from collections.abc import Callable, Collection, Iterable, Sequence

from dmdelta.engine.apply.table_state import Phase, TableState, TableStates
from dmdelta.engine.apply.turns import WaitingTurn
from dmdelta.model.schema import TableName

NEW_TABLE_SECONDS = 1.0
"""The cost of a table that has had no turn yet."""
MergedOf = Callable[[Iterable[TableName]], frozenset[TableName]]
"""Returns the merged tables that source tables are routed to."""


def ready_turns(states: TableStates, busy: Collection[TableName], merged_of: MergedOf) -> list[WaitingTurn]:
    """The turns that could start now, without those of tables that wait for others at a rename.

    Args:
        busy: the tables that have a turn already, or must not start one.
    """
    now, ready = time.monotonic(), list[WaitingTurn]()
    for state in states:
        members = _members(states, state) if state.pending else []
        if not members or state is not members[0]:  # the first member stands for its group
            continue
        free = all(member.phase is Phase.FOLLOWING and member.name not in busy for member in members)
        if free and all(member.pending[0].landed is state.pending[0].landed for member in members):
            ready.append(_waiting_turn(members, merged_of, now))
    return ready


def _members(states: TableStates, state: TableState) -> list[TableState]:
    """The tables that share a table's next turn: those of its group for which the same range is pending."""
    first = state.pending[0]
    if not first.group:
        return [state]
    group = [states.of(name) for name in sorted(first.group)]
    return [other for other in group if any(each.landed is first.landed for each in other.pending)]


def _waiting_turn(members: Sequence[TableState], merged_of: MergedOf, now: float) -> WaitingTurn:
    return WaitingTurn(
        names=tuple(state.name for state in members),
        merged=merged_of(state.name for state in members),
        rows=sum(pending.rows for state in members for pending in state.pending),
        age=now - min(state.pending[0].since for state in members),
        cost=max(NEW_TABLE_SECONDS if state.seconds is None else state.seconds for state in members),
    )
