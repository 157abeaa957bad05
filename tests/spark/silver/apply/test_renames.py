"""RENAME TABLE in silver: the rows move with the name, or every table keeps what it has."""

from dataclasses import replace
from functools import partial

import pytest

from dmdelta.errors import UnsupportedSchemaChange
from dmdelta.model.schema import TableSchema
from dmdelta.rules import OnlineDdl
from dmdelta.silver.apply.apply import apply_group
from dmdelta.silver.history.repair import damaged_rows, repair_rows, repair_tag, swap
from dmdelta.silver.rows.strategy import Mode
from dmdelta.silver.schema.range_profile import tables_with_events
from dmdelta.silver.table.table import open_silver
from tests.support.changelog import ITEMS, Changelog

OLD, NEW = ("d", "items"), ("d", "renamed")


@pytest.fixture
def renamed(spark, lakehouse):
    """The log of a table whose name changes between two rows, and a table that had the new name before."""
    changelog = Changelog(spark, lakehouse)
    begin = changelog.position
    for name in (OLD, NEW):
        changelog.tell(TableSchema(*name, ITEMS.columns, ITEMS.primary_key))
    changelog.insert({"id": 1, "v": "old"}, OLD)
    for name in (OLD, NEW):
        changelog.ddl("RENAME TABLE items TO renamed", name)
        changelog.offset -= 10
    changelog.offset += 10
    changelog.insert({"id": 2, "v": "new"}, NEW)
    return changelog, begin, changelog.land()


def apply_both(changelog, begin, end, batch=1, **options):
    requests = [changelog.request(begin, end, name=name, batch=batch, **options) for name in (OLD, NEW)]
    events = tables_with_events(changelog.spark, requests[0].context, begin, end)
    return {result.table: result for result in apply_group(changelog.spark, events, requests)}


def test_the_result_of_a_range_has_both_sides_of_a_rename(renamed):
    """Rows before and after the statement are counted."""
    changelog, begin, end = renamed
    results = apply_both(changelog, begin, end)
    assert changelog.silver(NEW) == [(1, "old"), (2, "new")]
    assert {table: result.row_count for table, result in results.items()} == {"items": 1, "renamed": 1}


def test_tables_that_the_log_has_created_are_renamed_in_safe_mode(renamed):
    """A full load has not read them, so each name has the rows that the log gave it."""
    changelog, begin, end = renamed
    apply_both(changelog, begin, end, mode=Mode.SAFE, overlap_until=end)
    assert changelog.silver(NEW) == [(1, "old"), (2, "new")]
    assert changelog.silver(OLD) == []


@pytest.mark.parametrize("stopped", [OLD, pytest.param(NEW, marks=pytest.mark.long)])
def test_a_rename_that_may_have_been_applied_stops_its_tables(renamed, stopped):
    """Which rows a name had is unclear in log that is read again, or beside a snapshot: no table changes."""
    changelog, begin, end = renamed
    if stopped == OLD:  # by a snapshot
        open_silver(changelog.spark, changelog.request(begin, end, name=OLD).target, ITEMS)
    apply_both(changelog, begin, end)
    before = {name: changelog.silver(name) for name in (OLD, NEW)}
    again = changelog.position
    changelog.insert({"id": 3, "v": "later"}, NEW)
    for name in (OLD, NEW):
        changelog.ddl("RENAME TABLE items TO renamed", name)
        changelog.offset -= 10
    changelog.offset += 10
    end = changelog.land()
    context = changelog.request(again, end).context
    requests = [
        changelog.request(again, end, Mode.SAFE, name=name, batch=2, overlap_until=end if name == stopped else None)
        for name in (OLD, NEW)
    ]
    with pytest.raises(UnsupportedSchemaChange, match="log that is read again"):
        apply_group(changelog.spark, tables_with_events(changelog.spark, context, again, end), requests)
    assert changelog.silver(OLD) == before[OLD]
    assert changelog.silver(NEW) == [*before[NEW], (3, "later")]


def test_a_cut_over_whose_trash_table_is_not_recognized(spark, lakehouse):
    """The pattern of the shadow table alone fits: the table stops with its rows, instead of losing them."""
    changelog = Changelog(spark, lakehouse)
    begin = changelog.position
    changelog.tell(ITEMS)
    changelog.insert({"id": 1, "v": "kept"})
    changelog.ddl("RENAME TABLE items TO items_bin, _items_new TO items")
    end = changelog.land()
    request = changelog.request(begin, end, batch=1)
    online = OnlineDdl((r"^_(.+)_new$",), (r"^_(.+)_old$",))
    context = replace(request.context, rules=replace(request.context.rules, online=online))
    request = replace(request, context=context)
    with pytest.raises(UnsupportedSchemaChange, match="items_bin matches no pattern of trash-table-rules"):
        apply_group(spark, tables_with_events(spark, context, begin, end), [request])
    assert changelog.silver() == [(1, "kept")]


def released(spark, target, table):
    """Add a row as `dmdelta quality release` does."""
    live = spark.table(target.place)
    rows = live.selectExpr("7L AS id", "'released' AS v", "_dm_version", "_dm_committed_at")
    wrong = damaged_rows(live, rows, rows.where("false"), table)
    repair_rows(spark, target.place, wrong, table, partial(repair_tag, spark, target, "run-1"))


def rebuilt(spark, target, table):
    """Replace the rows as `dmdelta replay --rebuild` does."""
    live = spark.table(target.place)
    added = live.selectExpr("7L AS id", "'released' AS v", "_dm_version", "_dm_committed_at")
    swap(spark, target, live.unionAll(added), table, "run-1")


@pytest.mark.parametrize("repair", [released, rebuilt])
def test_rows_that_a_repair_has_written_move_with_the_name(spark, lakehouse, repair):
    """A repair has no commit of the table's own application; a RENAME that follows it directly copies its rows, too."""
    changelog = Changelog(spark, lakehouse)
    begin = changelog.position
    for name in (OLD, NEW):
        changelog.tell(TableSchema(*name, ITEMS.columns, ITEMS.primary_key))
    changelog.insert({"id": 1, "v": "old"}, OLD)
    middle = changelog.land()
    target = changelog.request(begin, middle, name=OLD).context.table(OLD)
    apply_both(changelog, begin, middle)
    repair(spark, target, TableSchema(*OLD, ITEMS.columns, ITEMS.primary_key))
    spark.sql(f"OPTIMIZE {target.place}")
    for name in (OLD, NEW):
        changelog.ddl("RENAME TABLE items TO renamed", name)
        changelog.offset -= 10
    changelog.offset += 10
    end = changelog.land()
    apply_both(changelog, middle, end, batch=2)
    assert changelog.silver(OLD) == []
    assert changelog.silver(NEW) == [(1, "old"), (7, "released")]
