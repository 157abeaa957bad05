"""Which views are replaced, which tables have none, and how long a view's rows are kept."""

import threading
from datetime import date, datetime, timedelta, timezone
from types import SimpleNamespace

import pytest

from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.live import views
from dmdelta.engine.live.view_plan import NoView, ViewFacts, plan_refusal, recorded_text, valid_until
from dmdelta.engine.live.views import Attempt, LiveViews, Outcome, plan_due
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.silver.live.view_query import ViewPart, view_query
from dmdelta.silver.schema.range_profile import StructureEvent

NOW = datetime(2026, 1, 20, 12, tzinfo=timezone.utc)
KEYED = TableSchema("d", "items", (Column("id", "bigint"), Column("v", "varchar", length=80)), ("id",))
KEYLESS = TableSchema("d", "bag", (Column("id", "bigint"),))
ITEMS, PAIRS = ("d", "items"), ("d", "pairs")


def attempt(version, age, outcome=Outcome.REPLACED):
    return Attempt([version], NOW - timedelta(seconds=age), outcome)


def test_views_are_replaced_when_silver_has_changed():
    """The one that has waited longest first; a table without a view before all others."""
    attempts = {ITEMS: attempt(3, 10), PAIRS: attempt(3, 20)}
    assert plan_due({ITEMS: [3], PAIRS: [3]}, attempts, NOW) == []
    assert plan_due({ITEMS: [4], PAIRS: [3]}, attempts, NOW) == [ITEMS]
    assert plan_due({ITEMS: [4], PAIRS: [5]}, attempts, NOW) == [PAIRS, ITEMS]
    assert plan_due({ITEMS: [4], ("d", "new"): [None]}, attempts, NOW) == [("d", "new"), ITEMS]


@pytest.mark.parametrize(
    ("outcome", "age", "version", "is_due"),
    [
        (Outcome.REPLACED, 6 * 3600, 3, True),
        (Outcome.POSTPONED, 10, 4, False),
        (Outcome.POSTPONED, 15, 3, True),
        (Outcome.REFUSED, 500, 4, False),
        (Outcome.REFUSED, 600, 3, True),
    ],
)
def test_views_are_tried_again(outcome, age, version, is_due):
    """A view expires, so it is replaced without a change; a refused one costs little until its table changes."""
    assert plan_due({ITEMS: [version]}, {ITEMS: attempt(3, age, outcome)}, NOW) == ([ITEMS] if is_due else [])


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (ViewFacts(KEYED), None),
        (ViewFacts(KEYLESS), "no primary key"),
        (ViewFacts(KEYED, rejects=True), "expectations"),
        (ViewFacts(KEYED, filtered=True), "expression filter"),
        (ViewFacts(KEYED, undropped=["w"]), "dropped"),
    ],
)
def test_tables_without_a_view(facts, reason):
    refused = plan_refusal(facts)
    if reason is None:
        assert refused is None
    else:
        assert isinstance(refused, NoView)
        assert reason in refused.reason


def test_a_view_expires_before_its_rows_do():
    """Silver's replaced files are kept for seven days, bronze's changes for the days that the spec names."""
    hour = timedelta(hours=1)
    assert valid_until(NOW, None, None) == NOW + timedelta(days=7) - hour
    assert valid_until(NOW, date(2026, 1, 20), 30) == NOW + timedelta(days=7) - hour
    assert valid_until(NOW, date(2026, 1, 20), 1) == datetime(2026, 1, 22, tzinfo=timezone.utc) - hour
    assert valid_until(NOW, None, 1) == datetime(2026, 1, 22, tzinfo=timezone.utc) - hour
    assert valid_until(NOW, date(2026, 1, 10), 5) < NOW


def test_the_structure_that_bronze_may_repeat():
    """Bronze records a structure again without a change of it; after a statement the next one is new."""
    at = Position(1, "binlog.000001", 100)
    recorded = StructureEvent(at, -1, Op.SCHEMA, "structure")
    statement = StructureEvent(at, 0, Op.DDL, "ALTER TABLE items ADD w INT")
    assert recorded_text([recorded]) == "structure"
    assert recorded_text([recorded, statement]) is None
    assert recorded_text([statement]) is None
    assert recorded_text([]) is None


def test_the_query_pins_silver_and_skips_files_of_bronze():
    """The version and the beginning of the tail are literals."""
    part = ViewPart(
        silver="c.d.items",
        bronze="c.bronze.events",
        version=17,
        own_rows="_dm_shard = 'x'",
        source_id="shop",
        name=ITEMS,
        begin=Position(2, "binlog.000003", 4711),
        schema=KEYED,
        columns={
            "id": "bigint",
            "v": "string",
            "other": "int",
            "_dm_version": "struct",
            "_dm_committed_at": "timestamp",
        },
        recorded="structure",
        ignored=[Op.DELETE],
    )
    query = view_query([part], NOW)
    assert "c.d.items VERSION AS OF 17" in query
    assert f"epoch = 2 AND seq >= {(3 << 40) + 4711}" in query
    assert "op IN ('insert', 'update') AND xid IS NULL" in query
    assert "NOT (op = 'schema' AND ddl = 'structure')" in query
    assert "CAST(NULL AS int) AS `other`" in query
    assert query.count("_dm_shard = 'x'") == 1
    assert view_query([part, part], NOW).count("UNION ALL") == 3


def test_a_stop_does_not_wait_for_a_round_without_end(monkeypatch):
    """It cancels the round's jobs for a while, then leaves the views as they are."""
    monkeypatch.setattr(views, "CANCEL_SECONDS", 0.0)
    cancelled, done = [], threading.Event()
    spark = SimpleNamespace(interruptAll=lambda: cancelled.append(True))
    loop = LiveViews(SimpleNamespace(task=SimpleNamespace(spark=spark)), dict)
    monkeypatch.setattr(LiveViews, "_follow", lambda _loop, _stop: done.wait())
    loop.start("views", StopRequest())
    loop.end(None)
    done.set()
    assert cancelled
    assert loop.join(20)
