"""verify's comparison over recorded binlogs, without Spark: every difference in covered values is found."""

from collections import defaultdict
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal, localcontext

import pytest

from dmdelta.verification.compare import EventComparison
from dmdelta.verification.events import without_skipped
from dmdelta.verification.results import DifferenceCounts
from tests.support.golden import SERVERS, recording
from tests.support.gtids import half_of
from tests.support.verifying import NOT_COVERED, bronze_rows, counted, logged_events

FIXED_LENGTH = 254
"""The type of BINARY in a table map."""


@pytest.fixture(scope="module", params=SERVERS)
def read(request):
    """A recording's name, its events and bronze's rows."""
    recorded = recording(request.param)
    return request.param, list(logged_events(recorded)), bronze_rows(recorded)


def compared(events, rows, wanted=lambda table: table[0] == "golden"):
    """The counters of a comparison."""
    unread = {event.place for event in events if event.unread is not None}
    counters = DifferenceCounts("s")
    comparison = EventComparison(wanted, counters)
    seen = [row for row in rows if row.place not in unread]
    comparison.compare(events, seen, counted([row for row in rows if row.place in unread]))
    return counters


def by_place(rows):
    found = defaultdict(list)
    for row in rows:
        found[row.place].append(row)
    return found


def said(counters):
    """The differences, without their source."""
    return [(one.position, one.table, one.what, one.row) for one in counters.differences()]


def test_nothing_differs_and_what_is_not_covered_is_reported(read):
    """Every event and row of every recording is compared, or counted with a reason."""
    name, events, rows = read
    counters = compared(events, rows)
    assert said(counters) == []
    tables = counters.tables()
    missed = {
        (table.table.partition(".")[2], one.reason): (one.events, one.rows, one.values)
        for table in tables
        for one in table.not_covered
    }
    assert missed == NOT_COVERED[name]
    left_out = sum(one.rows for table in tables for one in table.not_covered)
    assert sum(table.rows for table in tables) + left_out == len(rows) > 200
    assert sum(table.values for table in tables) > 1_800


def test_each_covered_value_is_found_when_it_is_changed(read):
    """One value after the other: the event's other values stay compared, and only the changed one is reported."""
    _, events, rows = read
    placed = by_place(rows)
    covered = found = 0
    for event in events:
        if event.unread is not None or event.place not in placed:
            continue
        own = placed[event.place]
        before = compared([event], own).of(event.table).values
        covered += before
        for number, row in enumerate(own):
            for word in ("before", "after"):
                for column, value in (getattr(row, word) or {}).items():
                    image = {**getattr(row, word), column: changed(value)}
                    counters = compared([event], [*own[:number], replace(row, **{word: image}), *own[number + 1 :]])
                    lost = before - counters.of(event.table).values
                    assert lost in (0, 1)
                    if lost:
                        (one,) = counters.differences()
                        assert (one.row, one.columns) == (row.row, (f"{word}.{column}",))
                    found += lost
    assert found == covered > 1_800


def test_lost_trailing_zeros_are_found(read):
    """Bronze has the bytes of a VARBINARY and a BLOB as they are; of a BINARY, the log itself lacks trailing zeros."""
    _, events, rows = read
    placed = by_place(rows)
    damaged = 0
    for event in events:
        if event.unread is not None or event.table[0] != "golden":
            continue
        for row in placed.get(event.place, []):
            kinds = {
                column.name: logged.kind for column, logged in zip(row.structure.columns, event.columns, strict=True)
            }
            for column, value in (row.after or {}).items():
                if not isinstance(value, bytes) or not value.endswith(b"\0"):
                    continue
                image = {**row.after, column: value.rstrip(b"\0")}
                others = [one for one in placed[event.place] if one is not row]
                counters = compared([event], [*others, replace(row, after=image)])
                found = [one.columns for one in counters.differences()]
                assert found == ([] if kinds[column] == FIXED_LENGTH else [(f"after.{column}",)])
                damaged += bool(found)
    assert damaged > 0


def changed(value):
    """Another value of the same type, as close as possible."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, datetime):
        return value - timedelta(microseconds=1) if value.year > 1 else value + timedelta(microseconds=1)
    if isinstance(value, date):
        return value - timedelta(days=1) if value > date.min else value + timedelta(days=1)
    if isinstance(value, Decimal):
        with localcontext() as context:
            context.prec = 80
            return value + Decimal(1).scaleb(value.as_tuple().exponent)
    if isinstance(value, float):
        return value * 2 + 1
    if isinstance(value, int):
        return value + 1
    if isinstance(value, bytes):
        return value + b"x"
    if isinstance(value, str):
        return f"{value[:-1]}{'0' if value[-1:] == '1' else '1'}"
    if isinstance(value, list):
        return [*value, 1]
    if isinstance(value, dict):
        return {**value, "srid": value["srid"] + 1} if "srid" in value else {**value, "more": 1}
    return "x"


def test_each_missing_row_and_event_is_found(read):
    """One row of each event, and all of its rows."""
    _, events, rows = read
    placed = by_place(rows)
    checked = 0
    for event in events:
        own = placed.get(event.place, [])
        if event.unread is not None or not own:
            continue
        position, table = f"1/{event.place[0]}:{event.place[1]}", ".".join(event.table)
        last = own[-1]
        assert said(compared([event], [])) == [(position, table, f"the event ({len(own)} rows) is not in bronze", None)]
        if len(own) > 1:
            assert said(compared([event], own[:-1])) == [(position, table, "the row is not in bronze", last.row)]
        doubled = said(compared([event], [*own, last]))
        assert doubled == [(position, table, "the row is in bronze more than once", last.row)]
        more = said(compared([event], [*own, replace(last, row=last.row + 1)]))
        assert more == [(position, table, "the row is in bronze, not in the log", last.row + 1)]
        checked += 1
    assert checked > 130


def test_rows_of_another_place_table_op_or_gtid_differ(read):
    """A row that contradicts its event, and a row without an event in the log."""
    _, events, rows = read
    placed = by_place(rows)
    event = next(
        event for event in events if event.unread is None and event.gtid is not None and len(placed[event.place]) == 1
    )
    (row,) = placed[event.place]
    position, table = f"1/{event.place[0]}:{event.place[1]}", ".".join(event.table)
    other = ("golden", "other")
    assert (position, table, f"is {row.op} of golden.other in bronze", 0) in said(
        compared([event], [replace(row, table=other)])
    )
    assert (position, table, f"is read of {table} in bronze", 0) in said(compared([event], [replace(row, op="read")]))
    assert said(compared([event], [replace(row, gtid="0-1-0")])) == [(position, table, "has another GTID in bronze", 0)]
    moved = replace(row, place=(row.place[0], row.place[1] + 1))
    assert said(compared([event], [moved])) == [
        (position, table, "the event (1 rows) is not in bronze", None),
        (f"1/{moved.place[0]}:{moved.place[1]}", table, "1 rows in bronze, no such row event in the log", None),
    ]


def test_tables_that_the_rules_exclude_may_be_missing(read):
    """Their events are not counted if bronze has none; rows that bronze has are compared."""
    _, events, rows = read
    nothing = compared(events, [], wanted=lambda _: False)
    assert said(nothing) == []
    assert [table.table for table in nothing.tables() if table.events or table.rows] == []
    everything = compared(events, rows, wanted=lambda _: False)
    assert sum(table.values for table in everything.tables()) > 1_800


def test_an_event_that_is_not_read_still_has_its_table_and_op():
    """MariaDB's compressed row events: their rows are not read, but a missing or misplaced row is a difference."""
    recorded = recording("mariadb")
    events = [event for event in logged_events(recorded) if event.unread == "compressed row event"]
    placed = by_place(bronze_rows(recorded))
    for event in events:
        own = placed[event.place]
        position, table = f"1/{event.place[0]}:{event.place[1]}", ".".join(event.table)
        assert said(compared([event], own)) == []
        assert said(compared([event], [])) == [(position, table, "the event is not in bronze", None)]
        wrong = [replace(row, op="read") for row in own]
        assert said(compared([event], wrong)) == [(position, table, f"is read of {table} in bronze", None)]
    assert len(events) == 13


def test_transactions_that_an_earlier_epoch_has(read):
    """Bronze has no rows of skipped transactions, and none of them is missing; a GTID that is not read is not covered."""
    _, events, rows = read
    skipped = half_of(row.gtid for row in rows)
    landed = [row for row in rows if row.gtid is None or row.gtid not in skipped]
    counters = compared([left for event in events if (left := without_skipped(event, skipped))], landed)
    assert said(counters) == []
    assert said(compared(events, landed))
