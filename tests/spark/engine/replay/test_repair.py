"""A replay of a range into the live table repairs the rows that differ, and keeps all others."""

from contextlib import nullcontext

import pytest

from dmdelta.engine.history.lineage import TablePast
from dmdelta.engine.history.scratch import TableScratch
from dmdelta.engine.replay import repair
from dmdelta.engine.replay.repair import TableRepair
from dmdelta.engine.validation.fix import FIXED_EPOCH
from dmdelta.model.change import Op
from tests.support.changelog import ITEMS
from tests.support.live import InterpretedLog


def delete_all(log):
    """Log a delete of each row."""
    for row in [dict(row) for row in log.tables[ITEMS.name].rows]:
        log.delete(row)


def truncate(log):
    """Log a TRUNCATE."""
    log.tables[ITEMS.name].rows.clear()
    log.ddl("TRUNCATE TABLE items", op=Op.TRUNCATE)


def replayed(log, begin, end):
    """The result of a replay of a range into silver."""
    source = log.live().source
    past = TablePast(source.task, source.context, ITEMS.name)
    scratch = TableScratch(source.task, source.context, ITEMS.name, lambda _: None)
    return TableRepair(scratch, past).run(begin, end)


@pytest.mark.parametrize(("emptied", "epoch"), [(delete_all, FIXED_EPOCH), (truncate, 1)])
def test_a_row_that_comes_back_after_the_range_stays(spark, lakehouse, monkeypatch, emptied, epoch):
    """Also if `validate --fix` or a full load (epoch 1) has read it. A row that does not come back is deleted."""
    monkeypatch.setattr(repair, "exclusive_access", lambda _: nullcontext())
    log = InterpretedLog(spark, lakehouse)
    log.restart(log.position)
    created = log.position
    log.create(ITEMS)
    log.insert({"id": 1, "v": "a"})
    log.insert({"id": 2, "v": "b"})
    begin = log.position
    emptied(log)
    end = log.position
    log.insert({"id": 1, "v": "a"})
    log.apply(created)
    place = lakehouse.silver(*ITEMS.name)
    spark.sql(f"INSERT INTO {place} SELECT 2 AS id, 'b' AS v, _dm_version, _dm_committed_at FROM {place}")
    spark.sql(f"UPDATE {place} SET _dm_version = named_struct('epoch', {epoch}, 'seq', 1L, 'row', 0)")
    done = replayed(log, begin, end)
    assert (done.missing, done.different, done.extra) == (0, 0, 1)
    assert log.silver() == [(1, "a")]
