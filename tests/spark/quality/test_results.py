"""The results of evaluations: each is a row, for a limited time."""

from datetime import datetime, timedelta, timezone

from dmdelta.lakehouse.access.spark import SparkTable
from dmdelta.model.position import Position
from dmdelta.quality import results
from dmdelta.quality.results import KEPT, QUALITY, Result, ResultStore, Scope, Subject

SUBJECT = Subject("s1", ("shop", "t"), Scope.RUN, None, Position(1, "binlog.000001", 4))


def add(spark, lakehouse, store, expectation, age=timedelta(0)):
    """Store a result, and the same of an earlier time."""
    store.add(SUBJECT, [Result(expectation, "warn", success=False)])
    moment = datetime.now(timezone.utc) - age
    QUALITY.of(spark, lakehouse, "shop").append([{"expectation": f"{expectation} before", "at": moment}])


def test_old_results_are_removed(spark, lakehouse, monkeypatch):
    """At the first result of a process and at times later; newer ones stay."""
    monkeypatch.setattr(results, "COMPACT_EVERY", 2)
    store = ResultStore(spark, lakehouse, "shop", "r1")
    add(spark, lakehouse, store, "a", KEPT + timedelta(minutes=1))
    add(spark, lakehouse, store, "b", KEPT - timedelta(minutes=1))
    table = QUALITY.of(spark, lakehouse, "shop")
    assert {row["expectation"] for row in table.rows()} == {"a", "a before", "b", "b before"}
    add(spark, lakehouse, store, "c")
    assert {row["expectation"] for row in table.rows()} == {"a", "b", "b before", "c", "c before"}


def test_spark_removes_the_same_results(spark, lakehouse, monkeypatch):
    """Outside a local root, it is Spark that removes them."""
    store = ResultStore(spark, lakehouse, "shop", "r1")
    add(spark, lakehouse, store, "a", KEPT + timedelta(minutes=1))
    add(spark, lakehouse, store, "b", KEPT - timedelta(minutes=1))
    table = QUALITY.of(spark, lakehouse, "shop")
    with_spark = SparkTable(spark, table.place, QUALITY.columns)
    monkeypatch.setattr(results.TaskMetadata, "access", property(lambda _: with_spark))
    results._expire(table, datetime.now(timezone.utc) - KEPT)
    assert {row["expectation"] for row in table.rows()} == {"a", "b", "b before"}
