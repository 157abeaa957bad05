"""Which ad-hoc snapshots are part of a table's history."""

from dataclasses import replace

import pytest

from dmdelta.engine.history.lineage import NamedPast, TablePast, plan_reread, plan_unsettled
from dmdelta.errors import QualityError
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.silver.history.lineage import Beginnings, ReplayRange, Reread
from dmdelta.sink.plan.reload import Reload
from tests.support.commit_tags import tag


def log(offset):
    return Position(2, "binlog.000007", offset)


RESUMED, OVERLAP = log(100), log(150)
MARK = replace(tag(1), begin=RESUMED, end=RESUMED, safe_until=OVERLAP)


@pytest.mark.parametrize(
    ("applied", "marks", "until"),
    [
        (Reload(("shop", "t"), -1, RESUMED, OVERLAP), [], OVERLAP),
        (Reload(("shop", "t"), -1, RESUMED), [], RESUMED),
        (None, [replace(MARK, begin=log(90), end=log(90)), MARK], OVERLAP),
        (None, [replace(MARK, safe_until=None)], RESUMED),
    ],
)
def test_a_snapshot_in_silver_begins_the_history_anew(applied, marks, until):
    """As recorded, or as silver's own commit at the position where the log resumed proves."""
    assert plan_reread(-1, RESUMED, applied, marks) == Reread(-1, RESUMED, until)


@pytest.mark.parametrize("marks", [[], [replace(MARK, begin=OVERLAP, end=OVERLAP)]])
def test_an_abandoned_snapshot_does_not_count(marks):
    """Bronze may have some of its chunks only; another snapshot at another position proves nothing."""
    assert plan_reread(-1, RESUMED, None, marks) is None


CHUNK, READ_AT = Position.of_chunk(1, 3), log(90)
LOADED = Beginnings(overlap_until={2: OVERLAP})
READ_EXACTLY = Beginnings(exact={2: READ_AT}, overlap_until={2: OVERLAP})
REST = Position(3, "binlog.000001", 400)
SWITCHED = Beginnings(overlap_until={2: OVERLAP, 3: REST})
REREAD = Beginnings([Reread(-1, RESUMED, OVERLAP)], exact={2: READ_AT})


@pytest.mark.parametrize(
    ("begin", "end", "begun", "keyed", "until"),
    [
        (CHUNK, log(149), LOADED, True, OVERLAP),
        (CHUNK, OVERLAP, LOADED, True, None),
        (CHUNK, log(149), LOADED, False, None),
        (CHUNK, log(89), READ_EXACTLY, True, READ_AT),
        (CHUNK, log(89), READ_EXACTLY, False, READ_AT),
        (CHUNK, READ_AT, READ_EXACTLY, True, None),
        (CHUNK, log(120), READ_EXACTLY, True, None),
        (CHUNK, READ_AT, READ_EXACTLY, False, None),
        (CHUNK, log(40), replace(READ_EXACTLY, exact={4: Position(4, "binlog.000009", 4)}), False, None),
        (CHUNK, Position.of_chunk(1, 4), LOADED, True, OVERLAP),
        (CHUNK, Position.of_chunk(1, 4), Beginnings(), True, "its end"),
        (CHUNK, Position.of_chunk(1, 4), READ_EXACTLY, False, READ_AT),
        (CHUNK, Position.of_chunk(1, 4), READ_EXACTLY, True, READ_AT),
        (CHUNK, log(149), SWITCHED, True, OVERLAP),
        (CHUNK, replace(REST, offset=399), SWITCHED, True, REST),
        (CHUNK, replace(REST, offset=399), SWITCHED, False, REST),
        (CHUNK, REST, SWITCHED, True, None),
        (CHUNK, replace(REST, epoch=4, offset=4), SWITCHED, True, None),
        (Position.of_chunk(-1, 1), replace(REST, offset=399), replace(REREAD, overlap_until={3: REST}), True, REST),
        (Position.of_chunk(-1, 1), log(120), replace(REREAD, overlap_until={2: log(130)}), False, None),
        (Position.of_chunk(-1, 1), log(149), REREAD, True, OVERLAP),
        (Position.of_chunk(-1, 1), log(149), REREAD, False, None),
        (Position.of_chunk(-1, 1), OVERLAP, REREAD, True, None),
    ],
)
def test_rows_are_unknown_while_a_snapshot_reads_them(begin, end, begun, keyed, until):
    """With a key until the log no longer repeats it; before the position at which a load read the table, in any case.

    Where another server has the rest of the overlap, in its log, too.
    """
    assert plan_unsettled(begin, end, begun, keyed=keyed) == str(until or "")


@pytest.mark.parametrize("key", [(), ("id",)])
def test_a_position_before_a_load_is_refused(monkeypatch, key):
    """Also for a table without a key."""
    schema = TableSchema("shop", "t", (Column("id", "int"),), key)
    monkeypatch.setattr(TablePast, "schema_before", lambda *_: schema)
    monkeypatch.setattr(NamedPast, "files", lambda _: [])
    monkeypatch.setattr(NamedPast, "begun", lambda *_: READ_EXACTLY)
    past = TablePast(None, None, schema.name)
    with pytest.raises(QualityError, match=rf"until {READ_AT}: the table's rows at .* are unknown"):
        past.assert_settled([ReplayRange(CHUNK, log(0))], log(89))
    past.assert_settled([ReplayRange(CHUNK, log(0))], READ_AT)
    past.assert_settled([ReplayRange(log(4), log(89))], log(89))
