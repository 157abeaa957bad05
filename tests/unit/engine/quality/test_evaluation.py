"""Tables whose rows at the position of an evaluation are unknown."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from dmdelta.engine.quality.command import assert_evaluated
from dmdelta.engine.quality.evaluation import TableEvaluation, TableResult
from dmdelta.errors import QualityError
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.model.position import Position
from dmdelta.quality.results import Scope, Subject
from dmdelta.quality.suite import Suites
from dmdelta.rules import NO_RULES
from dmdelta.silver.apply.silver_context import SilverContext

CONTEXT = SilverContext(Lakehouse(root="/lake"), "task", "s", "run", "mysql", NO_RULES)
END = Position(2, "binlog.000001", 900)


def evaluated(state):
    history = SimpleNamespace(state=state)
    evaluation = TableEvaluation(None, CONTEXT, SimpleNamespace(history=history), timedelta(0), Suites())
    return evaluation.evaluate(("d", "t"), Scope.REPLAY, END, END)


def unsettled(*_, **__):
    raise QualityError("its rows are unknown")


def test_a_table_that_a_snapshot_was_reading_does_not_end_the_evaluation():
    """It is not evaluated, as a table that did not exist; the next one is evaluated."""
    unknown, absent = evaluated(unsettled), evaluated(lambda *_, **__: None)
    assert [one.note for one in unknown.results] == ["not evaluated: its rows are unknown"]
    assert [one.note for one in absent.results] == [f"not evaluated: the table did not exist at {END}"]
    assert not unknown.failed
    assert not absent.failed
    assert_evaluated([unknown, absent])
    assert_evaluated([unknown, TableResult(Subject("s", ("d", "u"), Scope.REPLAY, END, END), ())])
    with pytest.raises(QualityError, match="its rows are unknown"):
        assert_evaluated([unknown, unknown])
