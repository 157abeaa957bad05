"""What the filters of a spec leave of a statement."""

import pytest

from dmdelta.changelog.statement_filters import filter_action, kept_by_filters
from dmdelta.model.schema import Column, TableSchema
from dmdelta.rules import NO_RULES, Action, EventFilter, SourceRules
from dmdelta.rules.filters import Rule

T = ("d", "t")
STRUCTURE = TableSchema(*T, (Column("a", "bigint"), Column("b", "int")))


def rules(*events, sql_pattern=(), action=Action.IGNORE):
    return SourceRules("s", events=EventFilter((Rule("r", "d", "t", events, sql_pattern, action),)))


@pytest.mark.parametrize(
    ("events", "actions", "left"),
    [
        (("drop column",), "DROP a, ADD c INT, DROP b", "ADD c INT"),
        (("drop column",), "DROP a, DROP b", None),
        (("drop column",), "ADD c INT, ADD d INT", None),
        (("drop column",), "DROP a, ALGORITHM=INPLACE, LOCK=NONE", None),
        (("drop column",), "DROP a, ADD c INT, ALGORITHM=INPLACE", "ADD c INT, ALGORITHM=INPLACE"),
        (("value range decrease",), "MODIFY a INT, MODIFY b BIGINT", "MODIFY b BIGINT"),
        (("modify column",), "MODIFY a INT, MODIFY b VARCHAR(9)", "MODIFY a INT"),
        (("drop column",), "DROP a, ORDER BY b, c", None),
    ],
)
def test_ignored_actions(events, actions, left):
    """The rest of an ALTER TABLE; None if there is none, or nothing is ignored, or it cannot be split."""
    expected = f"ALTER TABLE t {left}" if left else None
    assert kept_by_filters(rules(*events), T, f"ALTER TABLE t {actions}", STRUCTURE) == expected


def test_each_action_is_matched_alone():
    """A pattern for the text sees a statement with this action only."""
    matching = rules(sql_pattern=("t DROP",))
    assert kept_by_filters(matching, T, "ALTER TABLE t ADD c INT, DROP a, DROP b", None) == "ALTER TABLE t ADD c INT"
    assert kept_by_filters(matching, ("d", "u"), "ALTER TABLE u ADD c INT, DROP a", None) is None
    assert (
        kept_by_filters(rules("drop column", action=Action.ERROR), T, "ALTER TABLE t ADD c INT, DROP a", None) is None
    )


def test_the_action_for_a_statement():
    """It depends on the structure before it; what is ignored in part is an error."""
    narrowing = "ALTER TABLE t MODIFY a INT"
    ignores = rules("value range decrease")
    assert filter_action(ignores, T, narrowing, STRUCTURE) is Action.IGNORE
    assert filter_action(ignores, T, narrowing, None) is Action.DO
    assert filter_action(ignores, T, narrowing + ", ADD c INT", STRUCTURE) is Action.ERROR
    assert filter_action(NO_RULES, T, narrowing, STRUCTURE) is Action.DO
