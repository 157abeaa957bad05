"""A view equals the result of an interpreter of the events, whatever lands and is applied after it was written."""

import random
import uuid
from datetime import datetime, timedelta, timezone

import pytest

from dmdelta.engine.live.view_plan import NoView, view_parts
from dmdelta.errors import ForeignTable
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.views import assert_owned_view, replace_view
from dmdelta.model.change import Op
from dmdelta.model.schema import Column
from dmdelta.silver.live.view_query import view_query
from tests.support.changelog import ITEMS, TASK
from tests.support.live import BAG, PAIR, InterpretedLog, Workload

CATALOG = "spark_catalog"


@pytest.fixture
def catalog(spark):
    """A lakehouse in Spark's own catalog, whose schema `d` is the test's."""
    bronze = f"b_{uuid.uuid4().hex[:8]}"
    for name in (bronze, "d"):
        spark.sql(f"CREATE SCHEMA {CATALOG}.{name}")
    yield Lakehouse(catalog=CATALOG, bronze_name=bronze, metadata_name=bronze)
    for name in (bronze, "d"):
        spark.sql(f"DROP SCHEMA {CATALOG}.{name} CASCADE")


def write(log, name):
    """Write the view of a table, of what has landed and is applied so far."""
    parts = view_parts([(log.live(), name)])
    assert not isinstance(parts, NoView), parts
    until = datetime.now(timezone.utc) + timedelta(hours=1)
    replace_view(log.spark, view(log, name), view_query(parts, until), TASK)


def view(log, name):
    return log.lakehouse.silver(name[0], f"{name[1]}_live")


def read(log, name):
    rows = log.spark.table(view(log, name)).drop("_dm_version", "_dm_committed_at")
    return sorted((tuple(row) for row in rows.collect()), key=repr)


def assert_reads(log, name, at=None):
    log.land()
    assert read(log, name) == log.at(at or log.position)[name].shown


def applied(log, name, begun):
    """Apply what has landed to a table, and remember how far."""
    end = log.land()
    if begun[name] < end:
        log.apply(begun[name], end, name=name)
    begun[name] = end


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 4))])
def test_a_view_is_right_while_silver_and_bronze_advance(spark, catalog, seed):
    """Key changes and reused keys; the view is older than silver, and than the newest change."""
    log, pick, tables = InterpretedLog(spark, catalog), random.Random(seed), (PAIR,) if seed == 1 else (ITEMS, PAIR)
    begun = {schema.name: log.position for schema in tables}
    work = Workload(log, seed, tables)
    work.work(20)
    for name in begun:
        applied(log, name, begun)
        write(log, name)
    for _ in range(1 if seed == 1 else 5):
        work.work(pick.choice((10, 40)))
        for name in begun:
            assert_reads(log, name)
            applied(log, name, begun)  # the view's version is not silver's newest any more
        work.work(10)
        for name in begun:
            assert_reads(log, name)
            write(log, name)


def prepared(log):
    """A table with two rows in silver and one in bronze only, and its view."""
    begin = log.position
    log.create(ITEMS)
    log.insert({"id": 1, "v": "a"})
    log.insert({"id": 2, "v": "b"})
    log.apply(begin)
    log.insert({"id": 3, "v": "c"})
    log.land()
    write(log, ITEMS.name)
    return begin


def events_unknown_to_a_view(log):
    """Each adds to the log an event whose effect a view cannot include, and rows after it."""
    yield lambda: (log.ddl("ALTER TABLE items ADD COLUMN w INT"), log.insert({"id": 9, "v": "x"}))
    yield lambda: (log.ddl("TRUNCATE TABLE items", op=Op.TRUNCATE), log.insert({"id": 9, "v": "x"}))
    yield lambda: (log.ddl("DROP DATABASE d", name=("d", None)), log.insert({"id": 9, "v": "x"}))
    yield lambda: (log.insert({"id": 8, "v": "p"}, xid="x1"), log.xa_end(Op.XA_COMMIT, "x1"))
    yield lambda: log.update({"id": 1}, {"id": 1, "v": "z"}, image=["id", "v"])


@pytest.mark.parametrize("number", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, 5))])
def test_a_view_ends_before_an_event_that_it_does_not_include(spark, catalog, number):
    """It has everything before the event, and nothing after it."""
    log = InterpretedLog(spark, catalog)
    prepared(log)
    log.delete({"id": 2, "v": "b"})
    log.land()
    rows = log.at(log.position)[ITEMS.name].shown
    list(events_unknown_to_a_view(log))[number]()
    log.insert({"id": 10, "v": "y"})
    log.land()
    assert read(log, ITEMS.name) == rows == [(1, "a"), (3, "c")]


def test_a_view_contains_whole_transactions(spark, catalog):
    """It ends before the first change of the transaction that has an event it does not include."""
    log = InterpretedLog(spark, catalog)
    prepared(log)
    log.gtid = "0-1-7"
    log.delete({"id": 2, "v": "b"})
    rows = log.at(log.position)[ITEMS.name].shown
    log.gtid = "0-1-8"
    log.insert({"id": 8, "v": "all columns"})
    log.update({"id": 8}, {"id": 8, "v": "some columns"}, image=["id", "v"])
    log.gtid = "0-1-9"
    log.insert({"id": 9, "v": "x"})
    log.land()
    assert read(log, ITEMS.name) == rows == [(1, "a"), (3, "c")]


def test_a_structure_that_is_recorded_again_is_no_change(spark, catalog):
    """A new run of the task records the structures of its tables."""
    log = InterpretedLog(spark, catalog)
    prepared(log)
    log.tell(ITEMS)
    log.insert({"id": 4, "v": "d"})
    assert_reads(log, ITEMS.name)


@pytest.mark.long
def test_a_view_has_the_columns_of_its_structure(spark, catalog):
    """After silver has followed a statement, a new view has the new column."""
    log = InterpretedLog(spark, catalog)
    begin = prepared(log)
    wider = (*ITEMS.columns, Column("w", "int"))
    statement = log.position
    log.ddl("ALTER TABLE items ADD COLUMN w INT")
    log.tell(type(ITEMS)("d", "items", wider, ("id",)))
    log.tables[ITEMS.name].columns.append("w")
    for row in log.tables[ITEMS.name].rows:
        row["w"] = None
    log.insert({"id": 4, "v": "d", "w": 4})
    assert begin < statement
    log.apply(log.results[ITEMS.name].end)
    log.update({"id": 4, "v": "d", "w": 4}, {"id": 4, "v": "d", "w": 5})
    log.land()
    write(log, ITEMS.name)
    assert_reads(log, ITEMS.name)


def test_tables_that_have_no_view(spark, catalog):
    """A table without a key."""
    log = InterpretedLog(spark, catalog)
    begin = log.position
    log.create(BAG)
    log.insert({"id": 1, "v": "a"}, BAG.name)
    log.apply(begin, name=BAG.name)
    assert view_parts([(log.live(), BAG.name)]) == NoView("it has no primary key")


@pytest.mark.long
def test_silver_that_is_not_pinned_is_detected(spark, catalog):
    """Sabotage: a view reads silver as it is, and its snapshot of bronze is older. It has a mixture of two positions."""
    log = InterpretedLog(spark, catalog)
    prepared(log)
    (part,) = view_parts([(log.live(), ITEMS.name)])
    (newest,) = spark.sql(f"DESCRIBE HISTORY {catalog.bronze} LIMIT 1").collect()
    log.delete({"id": 3, "v": "c"})
    log.delete({"id": 2, "v": "b"})
    log.apply(log.results[ITEMS.name].end)
    assert log.silver() == [(1, "a")]
    query = view_query([part], datetime.now(timezone.utc) + timedelta(hours=1))
    query = query.replace(f"FROM {part.bronze}", f"FROM {part.bronze} VERSION AS OF {newest['version']}")
    assert rows_of(spark, query) == [(1, "a"), (2, "b"), (3, "c")]
    query = query.replace(f"{part.silver} VERSION AS OF {part.version}", part.silver)
    assert rows_of(spark, query) == [(1, "a"), (3, "c")]


def rows_of(spark, query):
    rows = spark.sql(query).drop("_dm_version", "_dm_committed_at").collect()
    return sorted((tuple(row) for row in rows), key=repr)


def test_a_foreign_view_is_kept(spark, catalog):
    """Another view or table may have the name of a view."""
    log = InterpretedLog(spark, catalog)
    prepared(log)
    assert_owned_view(spark, view(log, ITEMS.name), TASK)
    assert_owned_view(spark, view(log, ("d", "absent")), TASK)
    with pytest.raises(ForeignTable, match="did not create it"):
        assert_owned_view(spark, view(log, ITEMS.name), "another")
    with pytest.raises(ForeignTable, match="did not create it"):
        assert_owned_view(spark, log.lakehouse.bronze, TASK)
