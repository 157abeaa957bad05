"""Which rows of a filtered table are compared: those that no event which was left out can have made what they are."""

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


def test_updates_that_are_left_out_by_the_old_row_leave_nothing_to_compare():
    """Such a row may be any that it once was."""
    assert "update-old-value-expr" in plan_comparable_rows(expressions(**{"update-old": "v > 1"}), NAME)
    both = plan_comparable_rows(expressions(update=("v > 1", "v > 2")), NAME)
    assert both == ComparableRows(("v > 2",), outdated=True)


def test_a_condition_of_all_expressions():
    """Each is asked for by itself, and a comment in one does not swallow the rest."""
    found = plan_comparable_rows(expressions(insert="v > 1 -- big", delete="w", **{"update-new": "w"}), NAME)
    assert found == ComparableRows(("v > 1 -- big", "w"), outdated=True, deletes=True, inserts=True)
    assert found.source_condition == "((v > 1 -- big\n) IS TRUE) OR ((w\n) IS TRUE)"


VALUES = (0, 1, 2)
"""A row of one value; expressions are sets of values for which they are true."""
SETS = [frozenset(found) for size in range(4) for found in itertools.combinations(VALUES, size)]
HISTORIES = [
    history
    for length in range(1, 5)
    for history in itertools.product((*VALUES, None), repeat=length)
    if not any(one is None and other is None for one, other in itertools.pairwise((None, *history)))
]
"""What a row of one key is after each event; None: it was deleted."""


def folded(history, inserts, updates, deletes):
    """What silver has of a row: the last value that reached it. An update of a row that it lacks makes it."""
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
    """Of every history: a row that no expression is true for is in silver as it is; of one that is gone only such are
    left that an expression is true for, or that an update that was left out has kept.
    """
    for inserts, updates in itertools.product(SETS, SETS):
        left_out = inserts | updates | deletes
        for history in HISTORIES:
            present, held = history[-1], folded(history, inserts, updates, deletes)
            if present is not None and present not in left_out:
                assert held == present
            if present is None and held is not None and not (updates and deletes):
                assert held in left_out
