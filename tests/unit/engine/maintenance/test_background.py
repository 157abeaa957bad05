"""When a run maintains a silver table and its quarantine. The tables and the scheduler's turns are replaced."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from dmdelta.checkpoint import Point, Points, TablePoint
from dmdelta.engine.apply.table_state import TableStates
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.maintenance import background
from dmdelta.engine.maintenance.background import BackgroundMaintenance
from dmdelta.engine.telemetry.counters import RunCounters
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.maintenance.old_commits import Content, MaintainedTable
from dmdelta.lakehouse.maintenance.table import COMPACT_FILES, MaintenanceResult, TableHealth
from dmdelta.model.position import Position
from dmdelta.rules import NO_RULES
from dmdelta.silver.apply.silver_context import SilverContext

NAME = ("d", "items")


class Scheduler:
    """Holds a table, and the turn of its silver table, during a block."""

    def __init__(self, context):
        self.context = context
        self.can_pause = True
        self.states = TableStates()
        self.states.of(NAME).commits = 2
        self.held = set()
        counters = RunCounters(lambda _: None)
        self.tables = SimpleNamespace(turns=self.turns, counters=counters, points=Points("s1"))

    @contextmanager
    def maintenance(self, name, _stop):
        with self.holding(("paused", name)):
            yield self.can_pause

    @contextmanager
    def turns(self, _spark, names):
        with self.holding(("turn", *names)):
            yield

    @contextmanager
    def holding(self, what):
        self.held.add(what)
        yield
        self.held.remove(what)


@pytest.fixture
def scheduler(tmp_path):
    facts = {"task": "t", "source_id": "s1", "run": "run", "flavor": "mysql", "rules": NO_RULES}
    return Scheduler(SilverContext(lakehouse=Lakehouse(root=str(tmp_path)), checks=lambda *_: (), **facts))


@pytest.fixture
def maintained(monkeypatch, scheduler):
    """Polls with the health of tables by content; returns what is maintained, and what the scheduler holds then."""

    def poll(health):
        done = []

        def maintain(_spark, table, _plan, _since):
            done.append((table.content, set(scheduler.held)))
            return MaintenanceResult(table.table)

        monkeypatch.setattr(background, "read_table_health", lambda _, table: health.get(table.content))
        monkeypatch.setattr(background, "maintain_table", maintain)
        BackgroundMaintenance(SimpleNamespace(spark=None), scheduler, shared=False, worn=2).poll(StopRequest())
        assert scheduler.held == set()
        return done

    monkeypatch.setattr(background, "maintenance_session", lambda spark: spark)
    monkeypatch.setattr(background, "maintained_silver", lambda _, table: MaintainedTable(table, Content.SILVER))
    return poll


WORN = TableHealth(new_files=COMPACT_FILES)
HELD = {("paused", NAME), ("turn", NAME)}


@pytest.mark.parametrize("worn", [[Content.SILVER], [Content.QUARANTINE], [Content.SILVER, Content.QUARANTINE]])
def test_a_table_and_its_quarantine_are_maintained_while_the_table_is_paused(maintained, worn):
    """A turn writes the quarantine, too; if only one of the two needs it, only that one is maintained."""
    assert maintained(dict.fromkeys(worn, WORN)) == [(content, HELD) for content in worn]


def test_a_table_that_cannot_be_paused_is_maintained_later(maintained, scheduler):
    """And its quarantine."""
    scheduler.can_pause = False
    assert maintained({Content.SILVER: WORN, Content.QUARANTINE: WORN}) == []


def test_a_table_with_few_commits_is_maintained_in_the_next_pass(maintained, scheduler, monkeypatch):
    """However few it has got since the run has started."""
    scheduler.states.of(NAME).commits = 1
    assert maintained({Content.SILVER: WORN}) == []
    monkeypatch.setattr(background, "SLOW_SECONDS", 0.0)
    assert maintained({Content.SILVER: WORN}) == [(Content.SILVER, HELD)]
    assert scheduler.states.of(NAME).commits == 0


def test_a_table_of_an_earlier_run_is_maintained_without_new_commits(maintained, scheduler, monkeypatch):
    """The run knows it from the checkpoint."""
    scheduler.states = TableStates()
    scheduler.tables.points.applied(TablePoint(*NAME, Point(Position(1, "b.000001", 4))))
    monkeypatch.setattr(background, "SLOW_SECONDS", 0.0)
    assert maintained({Content.SILVER: WORN}) == [(Content.SILVER, HELD)]
