"""Which rows of a filtered table are compared: those that no ignored event can have affected."""

import itertools

import pytest

from dmdelta.config.expression_filter import ExpressionFilterRule
from dmdelta.rules import Action, EventFilter, SourceRules
from dmdelta.rules.comparable_rows import ALL_ROWS, ComparableRows, plan_comparable_rows
from dmdelta.rules.filters import Rule

NAME = ("d", "t")


def expressions(**kinds):
    """Rules with one expression each, by their kind; a tuple is a rule for updates with both."""
    found = []
    for kind, text in kinds.items():
        keys = {"update": ("update-old-value-expr", "update-new-value-expr")}.get(kind, (f"{kind}-value-expr",))
        texts = text if isinstance(text, tuple) else (text,)
        pairs = dict(zip(keys, texts, strict=True))
        found.append(ExpressionFilterRule.model_validate({"schema": "D", "table": "T", **pairs}))
    return SourceRules(expressions=tuple(found))


def ignoring(*events):
    rule = Rule("r", "d", "t", events, (), Action.IGNORE)
    return SourceRules(events=EventFilter((rule,)))


@pytest.mark.parametrize("events", [("delete",), ("update",), ("truncate table",), ("insert", "delete")])
def test_ignored_events_leave_nothing_to_compare(events):
    """The reason names them."""
    reason = plan_comparable_rows(ignoring(*events), NAME)
    assert reason == f"a filter of the spec ignores its events: {', '.join(events)}"
    assert plan_comparable_rows(ignoring(*events), ("d", "other")) == ALL_ROWS
    assert plan_comparable_rows(ignoring("add column"), NAME) == ALL_ROWS


def test_updates_that_are_filtered_by_the_old_row_leave_nothing_to_compare():
    """Such a row may have any of its earlier values."""
    assert "update-old-value-expr" in plan_comparable_rows(expressions(**{"update-old": "v > 1"}), NAME)
    both = plan_comparable_rows(expressions(update=("v > 1", "v > 2")), NAME)
    assert both == ComparableRows(("v > 2",), outdated=True)


def test_a_condition_of_all_expressions():
    """Each is a separate condition, and a comment in one does not hide the rest."""
    found = plan_comparable_rows(expressions(insert="v > 1 -- big", delete="w", **{"update-new": "w"}), NAME)
    assert found == ComparableRows(("v > 1 -- big", "w"), outdated=True, deletes=True, inserts=True)
    assert found.source_condition == "((v > 1 -- big\n) IS TRUE) OR ((w\n) IS TRUE)"


VALUES = (0, 1, 2)
"""The values of a row with one column; an expression is the set of values for which it is true."""
SETS = [frozenset(found) for size in range(4) for found in itertools.combinations(VALUES, size)]
HISTORIES = [
    history
    for length in range(1, 5)
    for history in itertools.product((*VALUES, None), repeat=length)
    if not any(one is None and other is None for one, other in itertools.pairwise((None, *history)))
]
"""Histories of one key: its value after each event; None: it was deleted."""


def folded(history, inserts, updates, deletes):
    """The value in silver: the last one that was not filtered. An update of a missing row inserts it."""
    held, before = None, None
    for value in history:
        if value is None:
            held = held if before in deletes else None
        elif before is None:
            held = held if value in inserts else value
        else:
            held = held if value in updates else value
        before = value
    return held


@pytest.mark.parametrize("deletes", SETS)
def test_what_is_compared_does_not_depend_on_the_history(deletes):
    """For every history: a row for which no expression is true has its current value in silver. A deleted row is in it
    only if an expression is true for it, or if a filtered update has kept it.
    """
    for inserts, updates in itertools.product(SETS, SETS):
        left_out = inserts | updates | deletes
        for history in HISTORIES:
            present, held = history[-1], folded(history, inserts, updates, deletes)
            if present is not None and present not in left_out:
                assert held == present
            if present is None and held is not None and not (updates and deletes):
                assert held in left_out
