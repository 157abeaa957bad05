"""The built-in expectation freshness."""

from datetime import timedelta

import pytest

from dmdelta.engine.history.states import PastState
from dmdelta.engine.quality.evaluation import TableEvaluation
from dmdelta.silver.apply.request import read_request
from tests.support.changelog import ITEMS
from tests.support.live import InterpretedLog


def freshness(log):
    """The result for the table."""
    source = log.live().source
    request = read_request(source.context, ITEMS.name, log.position, log.position)
    state = PastState(request, log.position, ITEMS, None, None)
    evaluation = TableEvaluation(source.task, source.context, None, timedelta(minutes=15), None)
    return evaluation._fresh(state)


@pytest.mark.parametrize("later", [False, True])
def test_a_change_that_silver_lacks_makes_it_stale(spark, lakehouse, later):
    """Also if the change is in a later epoch than silver's position."""
    log = InterpretedLog(spark, lakehouse)
    created = log.position
    log.create(ITEMS)
    log.insert({"id": 1, "v": "a"})
    log.apply(created)
    assert freshness(log).success
    if later:
        log.restart(created)
    log.insert({"id": 2, "v": "b"})
    stale = freshness(log)
    assert not stale.success
    assert stale.note.endswith(" s")
