"""Which parts of a statement are executed after a crash."""

import pytest

from dmdelta.errors import SinkError
from dmdelta.model.position import Position
from dmdelta.sink.plan.checkpoint import AboutTo
from dmdelta.sink.plan.ddl import TargetStatement
from dmdelta.sink.plan.repetition import assert_repeatable, plan_parts

AT = Position(1, "binlog.000001", 100)


def statements(*texts):
    return [TargetStatement(text, None) for text in texts]


def parts(planned, earlier, *, loaded=False):
    return [(one.statement.sql, one.in_doubt) for one in plan_parts(planned, AT, earlier, loaded=loaded)]


def about_to(part, *texts):
    """What the checkpoint has before a part of a statement."""
    return plan_parts(statements(*texts), AT, None, loaded=False)[part].about_to


def test_parts_before_the_one_in_doubt_are_not_repeated():
    """A later part was not executed; a full load may have read the tables after each of them."""
    planned = statements("a", "b", "c")
    assert parts(planned, None) == [("a", False), ("b", False), ("c", False)]
    assert parts(planned, about_to(1, "a", "b", "c")) == [("b", True), ("c", False)]
    assert parts(planned, AboutTo(AT, 1)) == [("b", True), ("c", False)], "an earlier release has no fingerprint"
    assert parts(planned, None, loaded=True) == [("a", True), ("b", True), ("c", True)]
    assert parts(planned, AboutTo(Position(1, "binlog.000001", 99), 1)) == [("a", False), ("b", False), ("c", False)]


def test_a_replaced_statement_is_executed_from_its_first_part():
    """An operator override has other parts than those that an earlier run has counted."""
    earlier = about_to(1, "a", "wrong")
    assert parts(statements("right"), earlier) == [("right", True)]
    assert parts(statements("a", "right"), earlier) == [("a", True), ("right", True)]
    assert parts([], earlier) == []


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a",
        "ALTER TABLE t CHANGE a `B` INT, CHANGE b A INT",
        "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO c, RENAME COLUMN c TO a",
        "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u",
    ],
)
def test_a_second_execution_would_undo_the_first(sql):
    """Nothing tells whether the target has executed such a statement: it stops the sink."""
    with pytest.raises(SinkError, match="second execution"):
        assert_repeatable(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO c",
        "ALTER TABLE t CHANGE a a BIGINT",
        "ALTER TABLE t ADD c INT, DROP d",
        "ALTER TABLE t TRUNCATE PARTITION p",
        "ALTER TABLE t DROP PARTITION p",
        "RENAME TABLE t TO u",
        "TRUNCATE t",
        "CREATE INDEX i ON t (a)",
    ],
)
def test_a_second_execution_fails_or_changes_nothing(sql):
    """Such a statement may be repeated."""
    assert_repeatable(sql)
