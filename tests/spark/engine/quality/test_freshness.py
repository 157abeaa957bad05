"""The built-in expectation freshness."""

import json
from datetime import timedelta
from types import SimpleNamespace

import pytest

from dmdelta.engine.history.states import PastState
from dmdelta.engine.quality import evaluation
from dmdelta.engine.quality.evaluation import TableEvaluation
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.silver.apply.request import read_request
from tests.support.changelog import ITEMS
from tests.support.live import InterpretedLog


def freshness(log):
    """The result for the table."""
    source = log.live().source
    request = read_request(source.context, ITEMS.name, log.position, log.position)
    state = PastState(request, log.position, ITEMS, None, None)
    return TableEvaluation(source.task, source.context, None, timedelta(minutes=15), None)._fresh(state)


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


def test_changes_that_an_exact_load_has_seen_do_not_make_a_table_stale(spark, lakehouse, monkeypatch):
    """They are before the position at which it read the table. Silver remains at the load's end without later ones."""
    monkeypatch.setattr(evaluation, "table_version", lambda *_: SimpleNamespace(position=Position.of_chunk(1, 2)))
    log = InterpretedLog(spark, lakehouse)
    place = {"file": log.position.binlog_file, "pos": log.offset + 20, "exact": True}
    log._row(Op.WATERMARK, ITEMS.name, 0, ddl=json.dumps(place))
    log.restart(log.position)
    log.create(ITEMS)
    log.insert({"id": 1, "v": "a"})
    assert log.offset == place["pos"]
    assert freshness(log).success
    log.insert({"id": 2, "v": "b"})
    assert not freshness(log).success
