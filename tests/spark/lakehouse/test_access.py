"""Histories and dm_meta tables through both implementations, and through both in turn."""

import os
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import types as T  # noqa: N812 - Spark's convention

from dmdelta.errors import Fenced, LakehouseError, UnsupportedTable
from dmdelta.lakehouse.access.commit_log import newest_commits, newest_own_commit
from dmdelta.lakehouse.access.delta_rs.local_table import LocalTable
from dmdelta.lakehouse.access.interface import NewestBy, below, is_not_null, is_null, none_of, one_of
from dmdelta.lakehouse.access.local_root import local_folder, local_table
from dmdelta.lakehouse.access.spark import SparkTable
from dmdelta.lakehouse.commits import append
from dmdelta.lakehouse.history import own_commits, spark_commits, timed_commits
from dmdelta.lakehouse.metadata_table import MetadataTable
from dmdelta.lakehouse.session import is_provided
from dmdelta.lakehouse.tables import OWNER, table_state
from tests.support.commit_tags import tag
from tests.support.forgetting import forget_history

pytestmark = pytest.mark.skipif(is_provided(), reason="files of a provided Spark may be on another machine")
STATE = MetadataTable(
    "state",
    {
        "id": T.StringType(),
        "n": T.LongType(),
        "small": T.IntegerType(),
        "yes": T.BooleanType(),
        "texts": T.ArrayType(T.StringType()),
        "at": T.TimestampType(),
    },
    keys=("id",),
    order="n",
)
BY = NewestBy(STATE.keys, STATE.order)
NOON = datetime(2026, 1, 1, 12, 30, 15, 123456, tzinfo=timezone.utc)


@pytest.fixture
def both(spark, lakehouse):
    """A table that delta-rs has created, through delta-rs and through Spark."""
    assert not STATE.of(spark, lakehouse, "task").create()
    place = STATE.place(lakehouse, "task")
    return local_table(spark, place), SparkTable(spark, place, STATE.columns)


@pytest.fixture(params=["delta-rs", "Spark"])
def table(request, both):
    """The same table through each of the implementations."""
    return both[["delta-rs", "Spark"].index(request.param)]


def test_rows_come_back_as_they_were_written(table, both):
    """With every type that dm_meta has, and read by either implementation."""
    row = {"id": "ü'\\", "n": 1 << 40, "small": -7, "yes": True, "texts": ["x", None], "at": NOON}
    table.append([row, {"n": 1}], None)
    whole = [row, dict.fromkeys(STATE.columns) | {"n": 1}]
    for reader in both:
        assert sorted(reader.rows(), key=lambda found: -found["n"]) == whole
        assert reader.rows([is_not_null("id")], ["at", "small"]) == [{"at": NOON, "small": -7}]


def test_newest_rows_and_conditions(table):
    """Rows without an order do not count, NULL is a key, a column that the table lacks is NULL."""
    table.append([{"id": "a", "n": 3, "yes": True}, {"id": "a", "n": 1}, {"id": "b"}, {"n": 5}], None)
    table.append([{"id": "a", "n": 2}, {"id": "c", "n": 9}, {"n": 4}], None)
    assert {row["id"]: row["n"] for row in table.newest(BY, ())} == {"a": 3, None: 5, "c": 9}
    assert {row["id"]: row["n"] for row in table.newest(BY, [is_null("yes")])} == {"a": 2, None: 5, "c": 9}
    assert [row["n"] for row in table.newest(NewestBy((), "n"), [none_of("id", "c")])] == [3]
    assert [row["n"] for row in table.newest(NewestBy((), "n"), [one_of("id", "c", "b")])] == [9]
    assert table.newest(NewestBy((), "n"), [one_of("absent", "c")]) == []
    assert sorted(row["n"] for row in table.rows([below("n", 4), one_of("n", 1, 2, 4)], ["n"])) == [1, 2]
    assert len(table.newest(BY, [is_null("absent")])) == 3


def test_commits_are_idempotent_and_fenced(table):
    first = table.append([{"id": "a", "n": 1}], tag(1))
    assert table.append([{"id": "a", "n": 1}], tag(1)) == first
    with pytest.raises(Fenced, match="another runner"):
        table.append([{"id": "a", "n": 1}], tag(1, "two"))
    second = table.append([{"id": "a", "n": 2}], tag(2))
    table.compact()
    assert newest_own_commit(table.commits, "app") == second
    with pytest.raises(Fenced):
        table.append([{"id": "a", "n": 1}], tag(1))
    assert sorted(row["n"] for row in table.rows((), ["n"])) == [1, 2]


def test_a_commit_missing_in_the_history_is_not_repeated(table, spark):
    table.append([{"id": "a", "n": 1}], tag(7))
    forget_history(spark, local_folder(table.table))
    assert newest_own_commit(table.commits, "app") is None
    assert table.append([{"id": "a", "n": 1}], tag(7, "two")).tag == tag(7, "two")
    assert len(table.rows()) == 1
    assert table.append([{"id": "a", "n": 2}], tag(8, "two")).tag.version == 8


def test_rows_are_deleted(table):
    odd = "it's {x} -- \\"
    table.append([{"id": odd, "n": 1}, {"id": odd, "n": 2}, {"id": "b", "n": 1}], None)
    table.delete(
        lambda literal: f"id IN ({literal(odd)}, {literal('z')}) AND (n > 1 OR (n = 1 AND id <> {literal(odd)}))"
    )
    assert sorted((row["id"], row["n"]) for row in table.rows()) == [("b", 1), (odd, 1)]


def test_an_absent_table_has_nothing(spark, lakehouse, tmp_path):
    place = STATE.place(lakehouse, "absent")
    for absent in (local_table(spark, place), SparkTable(spark, place, STATE.columns)):
        assert (absent.commits(None), absent.newest(BY, ()), absent.rows(())) == ([], [], [])
        with pytest.raises(LakehouseError, match="absent_state"):
            absent.append([{"id": "a"}], tag(1))
    assert list(tmp_path.iterdir()) == []


def test_each_writer_honours_the_others_transactions(both, spark):
    """A version that one has written is skipped by the other, the next is committed, and both see all commits."""
    local, remote = both
    made = local.append([{"id": "delta-rs", "n": 1}], tag(1))
    assert remote.append([{"id": "lost", "n": 1}], tag(1)) == made
    second = remote.append([{"id": "Spark", "n": 2}], tag(2))
    assert local.append([{"id": "lost", "n": 2}], tag(2)) == second
    third = local.append([{"id": "delta-rs", "n": 3}], tag(3))
    for implementation in both:
        assert newest_commits(implementation.commits, "app") == (third.version, third)
        assert sorted(row["n"] for row in implementation.rows((), ["n"])) == [1, 2, 3]
        with pytest.raises(Fenced):
            implementation.append([{"id": "lost"}], tag(3, "two"))
        with pytest.raises(Fenced):
            implementation.append([{"id": "lost"}], tag(2))
    assert local.commits(None) == remote.commits(None)


def test_both_read_what_either_has_compacted_or_checkpointed(both, spark):
    """Checkpoints of the log by both, and the pointer to the last one, of which Hadoop keeps a checksum."""
    local, remote = both
    spark.sql(f"ALTER TABLE {remote.table} SET TBLPROPERTIES ('delta.checkpointInterval' = '3')")
    for number in range(1, 15):
        both[number % 2 == 0].append([{"id": "a", "n": number}], tag(number))
    log = local_folder(local.table) / "_delta_log"
    assert len(list(log.glob("*.checkpoint.parquet"))) > 3
    remote.compact()
    local.append([{"id": "a", "n": 15}], tag(15))
    local.compact()
    assert not (log / "._last_checkpoint.crc").exists()
    for implementation in both:
        assert sorted(row["n"] for row in implementation.rows((), ["n"])) == list(range(1, 16))
        assert newest_own_commit(implementation.commits, "app").tag == tag(15)


def test_a_task_keeps_its_table_whichever_implementation_created_it(spark, lakehouse, monkeypatch):
    """Owner, properties and columns are the same; the next creation adds what is missing."""
    older = MetadataTable("older", dict(list(STATE.columns.items())[:2]), STATE.keys, STATE.order)
    newer = MetadataTable("older", STATE.columns, STATE.keys, STATE.order)
    with monkeypatch.context() as patched:
        patched.setattr("dmdelta.lakehouse.metadata_table.local_metadata", lambda *_: None)
        assert not older.of(spark, lakehouse, "task").create()
        older.of(spark, lakehouse, "task").append([{"id": "old", "n": 1}])
    assert newer.of(spark, lakehouse, "task").create()
    newer.of(spark, lakehouse, "task").append([{"id": "new", "n": 2, "texts": ["x"], "at": NOON}])
    place = newer.place(lakehouse, "task")
    assert spark.sql(f"SELECT * FROM {place}").columns == list(STATE.columns)
    assert {row["id"]: row["texts"] for row in newer.of(spark, lakehouse, "task").rows()} == {"old": None, "new": ["x"]}
    STATE.of(spark, lakehouse, "task").create()
    theirs, ours = (table_state(spark, kind.place(lakehouse, "task")).properties for kind in (newer, STATE))
    for name in (OWNER, "delta.checkpointInterval"):
        assert theirs[name] == ours[name]
    spark.sql(f"INSERT INTO {STATE.place(lakehouse, 'task')} (id, n) VALUES ('spark', 1)")
    assert len(STATE.of(spark, lakehouse, "task").rows()) == 1


HISTORIES = {
    "mapping": ("`k,x` INT, v STRING", "'delta.columnMapping.mode'='name'"),
    "vectors": ("k INT, v STRING", "'delta.enableDeletionVectors'='true', 'delta.enableTypeWidening'='true'"),
    "variant": ("k INT, v VARIANT", "'delta.checkpointInterval'='2'"),
    "void": ("k INT, v VOID", "'delta.checkpointInterval'='2'"),
    "in-commit": ("k INT, v STRING", "'delta.enableInCommitTimestamps'='true'"),
    "v2 checkpoints": ("k INT, v STRING", "'delta.checkpointPolicy'='v2', 'delta.checkpointInterval'='2'"),
}


LONGER = ("mapping", "in-commit", "v2 checkpoints")


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.long if kind in LONGER else ()) for kind in HISTORIES]
)
def test_histories_are_those_of_describe_history(kind, spark, lakehouse):
    """Versions, tags and times, for tables whose rows delta-rs cannot read, and where files' times go backwards."""
    table = lakehouse.silver("odd `name`", f"{kind} 100%")
    columns, properties = HISTORIES[kind]
    spark.sql(f"CREATE TABLE {table} ({columns}) USING delta TBLPROPERTIES ({properties})")
    key = spark.table(table).columns[0]
    for number in range(1, 5):
        append(spark, spark.sql(f"SELECT {number} AS `{key}`"), table, tag(number))
    if kind == "vectors":
        spark.sql(f"DELETE FROM {table} WHERE k = 1")
        spark.sql(f"ALTER TABLE {table} ALTER COLUMN k TYPE BIGINT")
    log = local_folder(table) / "_delta_log"
    for version in (2, 3):
        os.utime(log / f"{version:020d}.json", (1e9, 1e9))
    local = local_table(spark, table)
    assert local.commits(None) == spark_commits(spark, table, None)
    assert local.commits(2) == spark_commits(spark, table, 2)
    assert timed_commits(spark, table, timedelta(days=1), 1000)[0][0].tag == tag(4)


def test_a_history_that_begins_later_than_its_table(both, spark):
    local, remote = both
    for number in range(1, 6):
        local.append([{"id": "a", "n": number}], tag(number))
    forget_history(spark, local_folder(local.table))
    local.append([{"id": "a", "n": 6}], tag(6))
    assert local.commits(None) == remote.commits(None)
    assert [commit.version for commit in local.commits(None)] == [7, 6]


def test_the_choice_follows_the_root(spark, lakehouse):
    assert isinstance(STATE.of(spark, lakehouse, "task").access, LocalTable)
    elsewhere = type(lakehouse)(root="s3a://bucket/lake")
    assert isinstance(STATE.of(spark, elsewhere, "task").access, SparkTable)
    catalog = type(lakehouse)(catalog="main")
    assert isinstance(STATE.of(spark, catalog, "task").access, SparkTable)
    assert local_folder(lakehouse.bronze) == Path(lakehouse.root) / "bronze"


def test_a_table_with_other_features_is_sparks(spark, lakehouse, monkeypatch):
    """Its rows in every process, and its history where delta-rs cannot read even that."""
    place = STATE.place(lakehouse, "task")
    columns = ", ".join(f"{name} {kind.simpleString()}" for name, kind in STATE.columns.items())
    spark.sql(
        f"CREATE TABLE {place} ({columns}) USING delta "
        "TBLPROPERTIES ('delta.enableDeletionVectors'='true', 'dmdelta.task'='task')"
    )
    table = STATE.of(spark, lakehouse, "task")
    assert table.create()
    table.append([{"id": "a", "n": 1}, {"id": "a", "n": 2}], tag(1))
    table.delete(lambda literal: f"id = {literal('a')} AND n = 2")
    assert [row["n"] for row in table.newest()] == [1]
    assert newest_own_commit(local_table(spark, place).commits, "app").tag == tag(1)
    assert isinstance(table.access, SparkTable)

    def unsupported(*_):
        raise UnsupportedTable("a later feature")

    monkeypatch.setattr(LocalTable, "commits", unsupported)
    assert [commit.tag for commit in own_commits(spark, place, "app")] == [tag(1)]


def test_replaced_files_are_removed_although_a_checkpoint_has_dropped_their_names(both):
    """A checkpoint of the log no longer lists what is older than the retention; each flush of dm_meta replaces a file."""
    local, _ = both
    local.set_properties({"delta.deletedFileRetentionDuration": "interval 1 seconds"})
    for number in range(3):
        local.delete(lambda literal: f"id <> {literal('-')}")
        local.append([{"id": str(number), "n": number}], None)
    time.sleep(1.1)
    DeltaTable(str(local.folder)).create_checkpoint()
    local.vacuum()
    used = {Path(name).name for name in DeltaTable(str(local.folder)).file_uris()}
    assert {path.name for path in local.folder.glob("*.parquet")} == used
    assert [row["id"] for row in local.rows()] == ["2"]
