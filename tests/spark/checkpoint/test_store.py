"""The checkpoint table: one commit per flush, the newest row of each key is current, and only its task may write it."""

import pytest

from dmdelta.checkpoint import (
    CheckpointStore,
    FlushReason,
    Point,
    Snapshot,
    TablePoint,
    checkpoint_rows,
    load_points,
)
from dmdelta.checkpoint import store as checkpoint_store
from dmdelta.checkpoint.store import CHECKPOINT
from dmdelta.errors import Fenced, ForeignTable, LakehouseError
from dmdelta.lakehouse.history import newest_own_commit
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.model.position import Position

A, B = ("shop", "a"), ("shop", "größe`s")


def at(offset, epoch=1, gtid=None):
    return Point(Position(epoch, f"binlog.{epoch:06d}", offset), gtid)


def opened(spark, lakehouse, *, source="one", run="r1", task="shop"):
    store = CheckpointStore(spark, lakehouse, task, source, run)
    return store, store.open()


def test_flushed_points_are_loaded(spark, lakehouse):
    """Global, table and exit points are restored, from the newest row of each key."""
    store, before = opened(spark, lakehouse)
    assert before is None
    first = (TablePoint(*A, at(200), 5, '{"x":1}'), TablePoint(*B, at(150), 6))
    store.write(Snapshot("one", at(100, gtid="u:1-7"), first, at(300, 2)), first, FlushReason.INTERVAL)
    newer = (TablePoint(*A, at(400, 2), 9), first[1])
    store.write(Snapshot("one", at(150), newer, at(400, 2)), newer[:1], FlushReason.DDL)

    _, after = opened(spark, lakehouse, run="r2")
    assert after == load_points(spark, lakehouse, "shop", "one")
    assert (after.flush_id, after.reason, after.global_point, after.exit_point) == (
        2,
        FlushReason.DDL,
        at(150),
        at(400, 2),
    )
    assert after.tables == {A: newer[0], B: first[1]}


def test_an_orderly_stop_leaves_no_exit_point(spark, lakehouse):
    """The exit point of an earlier flush does not show through a row without one."""
    store, _ = opened(spark, lakehouse)
    store.write(Snapshot("one", at(100), (), at(300)), (), FlushReason.INTERVAL)
    store.write(Snapshot("one", at(300), (), None), (), FlushReason.STOP)
    stored = load_points(spark, lakehouse, "shop", "one")
    assert (stored.reason, stored.exit_point) == (FlushReason.STOP, None)


def test_each_flush_is_one_tagged_commit_and_old_rows_are_kept(spark, lakehouse):
    """Two flushes are two commits; the newest has its position; all rows are kept as history."""
    store, _ = opened(spark, lakehouse)
    tables = (TablePoint(*A, at(100), 5),)
    store.write(Snapshot("one", at(100), tables, at(100)), tables, FlushReason.INTERVAL)
    store.write(Snapshot("one", at(200), tables[:0], at(200)), (), FlushReason.INTERVAL)
    table = CHECKPOINT.place(lakehouse, "shop")
    commit = newest_own_commit(spark, table, "dmdelta:shop:one:checkpoint")
    assert (commit.tag.version, commit.tag.begin, commit.tag.end) == (2, at(100).position, at(200).position)
    assert spark.sql(f"SELECT * FROM {table}").count() == 3
    assert spark.sql(f"SELECT * FROM {table}").columns == list(CHECKPOINT.columns)


def test_rows_of_old_flushes_are_removed(spark, lakehouse, monkeypatch):
    """Each hundredth flush has the rows of all tables, so that none loses its newest one; other sources keep theirs."""
    monkeypatch.setattr(checkpoint_store, "KEPT", 2)
    monkeypatch.setattr(checkpoint_store, "COMPACT_EVERY", 4)
    other, _ = opened(spark, lakehouse, source="two")
    other.write(Snapshot("two", at(50), (), at(50)), (), FlushReason.INTERVAL)
    store, _ = opened(spark, lakehouse)
    quiet = TablePoint(*A, at(800), 5, '{"x":1}')
    for number in range(1, 9):
        tables = (quiet, TablePoint(*B, at(200 + number), 6 + number))
        changed = tables if number == 1 else tables[1:]
        store.write(Snapshot("one", at(100 + number), tables, at(900)), changed, FlushReason.INTERVAL)
    _, after = opened(spark, lakehouse, run="r2")
    assert (after.flush_id, after.global_point) == (8, at(108))
    assert after.tables == {A: quiet, B: TablePoint(*B, at(208), 14)}
    rows = spark.sql(f"SELECT id, flush_id, cp_table FROM {CHECKPOINT.place(lakehouse, 'shop')}").collect()
    assert {row["flush_id"] for row in rows if row["id"] == "one"} == {7, 8}
    assert [row["flush_id"] for row in rows if row["id"] == "two"] == [1]
    (shown,) = (row for row in checkpoint_rows(spark, lakehouse, "shop") if row["cp_table"] == A[1])
    assert shown["updated_at"] == shown["created_at"]


def test_sources_of_a_task_share_the_table_and_nothing_else(spark, lakehouse):
    """Two sources flush concurrently; each loads its own points."""
    one, _ = opened(spark, lakehouse)
    two, _ = opened(spark, lakehouse, source="two")
    one.write(Snapshot("one", at(100), (), at(100)), (), FlushReason.INTERVAL)
    two.write(Snapshot("two", at(900), (), at(900)), (), FlushReason.STOP)
    assert load_points(spark, lakehouse, "shop", "one").global_point == at(100)
    assert load_points(spark, lakehouse, "shop", "two").global_point == at(900)
    assert load_points(spark, lakehouse, "shop", "three") is None


def test_rows_are_shown_with_the_time_of_their_first_flush(spark, lakehouse):
    """`checkpoint show` reads the newest rows; created_at is kept across flushes and restarts."""
    store, _ = opened(spark, lakehouse)
    tables = (TablePoint(*A, at(100), 5),)
    store.write(Snapshot("one", at(100), tables, at(100)), tables, FlushReason.INTERVAL)
    first = checkpoint_rows(spark, lakehouse, "shop")
    again, _ = opened(spark, lakehouse, run="r2")
    again.write(Snapshot("one", at(200), (), None), (), FlushReason.STOP)
    whole, table = checkpoint_rows(spark, lakehouse, "shop")
    assert (whole["is_global"], whole["binlog_pos"], whole["reason"]) == (True, 200, "stop")
    assert (table["cp_table"], table["binlog_pos"], table["delta_version"]) == ("a", 100, 5)
    assert whole["created_at"] == first[0]["created_at"] < whole["updated_at"]


def test_a_second_runner_is_fenced(spark, lakehouse):
    """A runner whose flush number another one has used gets an error, and its points are not written."""
    old, _ = opened(spark, lakehouse, run="r1")
    new, _ = opened(spark, lakehouse, run="r2")
    new.write(Snapshot("one", at(500), (), at(500)), (), FlushReason.INTERVAL)
    with pytest.raises(Fenced, match="another runner"):
        old.write(Snapshot("one", at(100), (), None), (), FlushReason.STOP)
    assert load_points(spark, lakehouse, "shop", "one").global_point == at(500)


def test_reading_a_task_that_never_flushed_creates_nothing(spark, lakehouse, tmp_path):
    """`status` and `checkpoint show` create no table."""
    assert load_points(spark, lakehouse, "shop", "one") is None
    assert checkpoint_rows(spark, lakehouse, "shop") == []
    assert list(tmp_path.iterdir()) == []


def test_a_foreign_table_is_refused(spark, lakehouse):
    """An existing Delta table at the checkpoint's path that belongs to something else is an error."""
    spark.sql(f"CREATE TABLE {CHECKPOINT.place(lakehouse, 'shop')} (x INT) USING delta")
    with pytest.raises(ForeignTable, match="did not create"):
        opened(spark, lakehouse)


def test_an_unreachable_lakehouse_is_reported(spark, tmp_path):
    """A root that cannot be written is a LakehouseError with the table's name."""
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(LakehouseError, match="shop_checkpoint"):
        opened(spark, Lakehouse(root=str(tmp_path / "file" / "lake")))
