"""Old commits are removed from the logs of bronze and silver: their positions stay known, to both writers."""

import os
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from itertools import pairwise

import pytest

from dmdelta.bronze.datasource import register
from dmdelta.bronze.landed_ranges import landed_batches, ranges_after
from dmdelta.bronze.landing import land, open_bronze, plan_landing, start_epoch
from dmdelta.bronze.progress import landing_app, newest_beginning, newest_landed, recorded_landed
from dmdelta.changelog.context import SourceContext
from dmdelta.errors import LakehouseError
from dmdelta.lakehouse.access.local_root import local_folder
from dmdelta.lakehouse.access.log_cleanup import LOG_RETENTION, vacuumed_to
from dmdelta.lakehouse.access.table_writers import spark_writes
from dmdelta.lakehouse.history import newest_own_commit, spark_commits
from dmdelta.lakehouse.maintenance.old_commits import Content, MaintainedTable, clean_log, maintained_silver
from dmdelta.lakehouse.maintenance.table import maintain_table, plan_maintenance, read_table_health
from dmdelta.lakehouse.retention import FILE_RETENTION, FREQUENT, SILVER
from dmdelta.lakehouse.session import is_provided
from dmdelta.lakehouse.tables import table_state
from dmdelta.model.position import Position
from dmdelta.rules import BlockAllowList, SourceRules
from dmdelta.segments import list_segments
from dmdelta.silver.table.target import silver_app
from tests.support.changelog import ITEMS, SOURCE, TASK, Changelog
from tests.support.forgetting import forget_history
from tests.support.golden import GOLDEN
from tests.support.sharded_changelog import MERGED, ONE, TWO, Shards

pytestmark = pytest.mark.skipif(is_provided(), reason="files of a provided Spark may be on another machine")
BUSY, IDLE = "mysql80", "idle"


@pytest.fixture
def source(spark, lakehouse):
    register(spark)
    open_bronze(spark, lakehouse.bronze, "task")
    rules = SourceRules(BUSY, BlockAllowList(do_dbs=("golden",)))
    return SourceContext(lakehouse, "task", BUSY, "first", "mysql", rules)


def land_next(spark, source, landed):
    """Land the next segment; from the golden log, which has more than the test needs."""
    epoch = landed.end.epoch if landed is not None else 1
    segments = [replace(one, epoch=epoch) for one in list_segments(GOLDEN / BUSY, BUSY)]
    after = [one for one in segments if landed is None or one.begin_position >= landed.end]
    return land(spark, source, plan_landing(after[:1], landed), landed)


def age(table, by):
    """Make the files of a table older."""
    for file in local_folder(table).rglob("*"):
        if file.is_file():
            then = file.stat().st_mtime - by.total_seconds()
            os.utime(file, (then, then))


def checkpoint_at_each_commit(spark, table):
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")


def maintain(spark, table):
    """The actions of `dmdelta maintain` on a table."""
    health = read_table_health(spark, table)
    return maintain_table(spark, table, plan_maintenance(health, datetime.now(timezone.utc), thorough=True))


def commits_of(table):
    return sorted(int(file.stem) for file in (local_folder(table) / "_delta_log").glob("*.json") if file.stem.isdigit())


@pytest.mark.long
def test_bronze_forgets_commits_but_no_position(spark, source):
    """Of a source without commits: its last batch, where its epoch began, and the number of the next batch."""
    table = MaintainedTable(source.bronze, Content.BRONZE)
    idle = replace(source, source_id=IDLE)
    begin = Position(3, "binlog.000007", 4)
    mark = start_epoch(spark, idle, None, begin, safe_until=replace(begin, offset=900))
    landed = land_next(spark, source, None)
    checkpoint_at_each_commit(spark, source.bronze)
    age(source.bronze, FREQUENT.log + timedelta(hours=1))
    landed = land_next(spark, source, landed)
    before = commits_of(source.bronze)

    maintained = maintain(spark, table)
    assert maintained.vacuumed, "without it, the next one would need the log from its beginning"
    assert maintained.log_files > 0
    left = commits_of(source.bronze)
    assert left[0] > before[2] == newest_own_commit(spark, source.bronze, landing_app("task", BUSY)).version - 2
    assert newest_landed(spark, idle) == mark
    assert newest_beginning(spark, idle) == begin
    assert ranges_after(spark, idle, mark, None) == []
    assert newest_landed(spark, source) == landed
    assert newest_beginning(spark, source) is None
    listed = [commit.version for commit in spark_commits(spark, source.bronze, None)]
    assert listed == left[::-1]

    for by in ("Spark", "delta-rs"):
        with spark_writes(source.bronze) if by == "Spark" else nullcontext():
            landed = land_next(spark, source, landed)
    assert newest_landed(spark, source) == landed
    assert [one.batch for one in landed_batches(spark, source)] == [2, 3, 4]
    again = start_epoch(spark, replace(idle, run="later"), mark, replace(begin, epoch=4))
    assert (again.batch, newest_landed(spark, idle)) == (2, again)
    assert spark.table(source.bronze).select("epoch", "seq", "row").distinct().count() > 0


@pytest.mark.long
def test_positions_are_repeated_again_before_their_repetition_is_old(spark, source):
    table, idle = MaintainedTable(source.bronze, Content.BRONZE), replace(source, source_id=IDLE)
    mark = start_epoch(spark, idle, None, Position(3, "binlog.000007", 4))
    checkpoint_at_each_commit(spark, source.bronze)
    landed = None
    for _ in range(3):
        landed = land_next(spark, source, landed)
        age(source.bronze, FREQUENT.log + timedelta(hours=1))
        landed = land_next(spark, source, landed)
        maintain(spark, table)
        maintain(spark, table)
        assert len(commits_of(source.bronze)) < 15
        assert newest_landed(spark, idle) == mark
        assert newest_landed(spark, source) == landed


def test_the_lost_batches_of_several_epochs_are_ranges(spark, source):
    """A reader that is in the first epoch gets each epoch's rest, without its commits, and then the batches."""
    first = land_next(spark, source, None)
    behind = replace(first.end, offset=first.end.offset - 1)
    begin, until = replace(first.end, epoch=2), replace(first.end, epoch=2, offset=first.end.offset + 1_000_000)
    mark = start_epoch(spark, source, first, begin, safe_until=until)
    second = land_next(spark, source, mark)
    assert [one.batch for one in ranges_after(spark, source, second, behind)] == [1, mark.batch, second.batch]
    checkpoint_at_each_commit(spark, source.bronze)
    age(source.bronze, FREQUENT.log + timedelta(hours=1))
    third = land_next(spark, source, second)
    assert maintain(spark, MaintainedTable(source.bronze, Content.BRONZE)).log_files > 0

    found = ranges_after(spark, source, third, behind)
    assert found[0].begin == behind
    assert found[-1].end == third.end
    assert [one.begin.epoch for one in found] == sorted(one.begin.epoch for one in found)
    ended, *rest = found
    assert ended.end > first.end
    assert ended.end < begin
    assert (rest[0].begin, rest[0].safe_until) == (begin, until)
    assert all(earlier.end == later.begin for earlier, later in pairwise(rest))
    assert rest[-1] == third or rest == [replace(third, begin=begin, safe_until=until)]


def test_bronze_whose_position_is_lost_is_an_error(spark, source):
    """Otherwise the log would land from its beginning, and Delta would skip each batch, whose number it knows."""
    landed = land_next(spark, source, None)
    forget_history(spark, local_folder(source.bronze))
    assert recorded_landed(spark, source) is None
    with pytest.raises(LakehouseError, match="no longer contains the position") as caught:
        newest_landed(spark, source)
    assert "--remove-meta" in caught.value.hint
    assert newest_landed(spark, replace(source, source_id="new")) is None
    begin = replace(landed.end, epoch=landed.end.epoch + 1)
    mark = start_epoch(spark, source, None, begin)
    assert mark.batch > 1_000_000_000_000
    assert newest_landed(spark, source) == mark
    assert land_next(spark, source, replace(mark, end=landed.end)).batch == mark.batch + 1


def test_silver_continues_after_its_log_was_cleaned(spark, lakehouse):
    """VACUUM continues without listing files; the table is at its position though other commits follow it."""
    changelog = Changelog(spark, lakehouse)
    table = maintained_silver(spark, lakehouse.silver(ITEMS.schema, ITEMS.table))
    changelog.tell(ITEMS)
    for number in range(3):
        apply(changelog, number)
    checkpoint_at_each_commit(spark, table.table)
    assert maintain(spark, table).vacuumed
    age(table.table, SILVER.log + timedelta(hours=1))
    where, rows = position(spark, table.table), changelog.silver()
    maintain(spark, table)
    apply(changelog, 3)
    age(table.table, SILVER.vacuum + timedelta(minutes=1))
    for _ in range(2):
        maintain(spark, table)
    left = commits_of(table.table)
    assert left[0] > 3
    assert left == list(range(left[0], left[-1] + 1))
    assert position(spark, table.table).end > where.end
    assert changelog.silver() == sorted([*rows, (3, "a")])
    apply(changelog, 4)
    assert (4, "a") in changelog.silver()
    spark.sql(f"VACUUM {table.table} LITE").collect()


@pytest.mark.long
def test_the_position_of_an_idle_table_is_repeated(spark, lakehouse):
    """The commits after it are other tools'; a repair's are not repeated."""
    changelog = Changelog(spark, lakehouse)
    table = maintained_silver(spark, lakehouse.silver(ITEMS.schema, ITEMS.table))
    changelog.tell(ITEMS)
    apply(changelog, 1)
    where = position(spark, table.table)
    checkpoint_at_each_commit(spark, table.table)
    for _ in range(2):
        age(table.table, SILVER.log + timedelta(hours=1))
        spark.sql(f"ALTER TABLE {table.table} SET TBLPROPERTIES ('mine' = 'now')")
        maintain(spark, table)
        spark.sql(f"INSERT INTO {table.table} SELECT * FROM {table.table} WHERE false")
        maintain(spark, table)
    assert commits_of(table.table)[0] > 5
    assert position(spark, table.table) == replace(where, again=True)
    apply(changelog, 2)
    assert changelog.silver() == [(1, "a"), (2, "a")]


@pytest.mark.long
def test_a_merged_table_keeps_the_position_of_a_shard_without_changes(spark, lakehouse):
    """Only the other shard commits. Both shards then continue where they were: no row is lost or applied twice."""
    shards = Shards(spark, lakehouse, ONE, TWO, key=())
    table = maintained_silver(spark, lakehouse.silver(*MERGED))
    for name in (ONE, TWO):
        shards.log.insert({"id": 1, "v": "a"}, name)
    shards.apply()
    idle = shard_position(spark, table.table, TWO)
    checkpoint_at_each_commit(spark, table.table)
    for number in (2, 3):
        age(table.table, SILVER.log + timedelta(hours=1))
        shards.log.insert({"id": number, "v": "b"}, ONE)
        shards.apply()
        maintain(spark, table)
    assert commits_of(table.table)[0] > 3
    assert shard_position(spark, table.table, TWO) == replace(idle, again=True)
    assert shard_position(spark, table.table, ONE).end == shards.begins[ONE]
    shards.begins = {name: shard_position(spark, table.table, name).end for name in (ONE, TWO)}
    shards.log.insert({"id": 4, "v": "c"}, TWO)
    shards.apply()
    assert shards.silver("id") == [(1,), (1,), (2,), (3,), (4,)]


def test_a_table_of_an_earlier_version_gets_the_retention_once(spark, lakehouse):
    """A value that a user has set stays."""
    changelog = Changelog(spark, lakehouse)
    table = maintained_silver(spark, lakehouse.silver(ITEMS.schema, ITEMS.table))
    changelog.tell(ITEMS)
    apply(changelog, 1)
    assert properties(spark, table)[FILE_RETENTION] == "interval 480 minutes"
    spark.sql(f"ALTER TABLE {table.table} UNSET TBLPROPERTIES ('{FILE_RETENTION}')")
    assert plan_maintenance(read_table_health(spark, table), datetime.now(timezone.utc)).retain
    maintain(spark, table)
    assert properties(spark, table)[FILE_RETENTION] == "interval 480 minutes"
    longer = f"'{FILE_RETENTION}' = 'interval 3 days', '{LOG_RETENTION}' = 'interval 5 days'"
    spark.sql(f"ALTER TABLE {table.table} SET TBLPROPERTIES ({longer})")
    health = read_table_health(spark, table)
    assert (health.unset, health.retention.files) == (False, timedelta(days=3))
    age(table.table, SILVER.log + timedelta(hours=1))
    checkpoint_at_each_commit(spark, table.table)
    clean_log(spark, table)
    assert commits_of(table.table)[0] == 0


@pytest.mark.long
def test_after_a_vacuum_that_lists_files_the_next_one_does_not_list_them(spark, lakehouse):
    """Delta forgets what such a VACUUM has covered."""
    changelog = Changelog(spark, lakehouse)
    table = maintained_silver(spark, lakehouse.silver(ITEMS.schema, ITEMS.table))
    changelog.tell(ITEMS)
    apply(changelog, 1)
    forget_history(spark, local_folder(table.table))
    age(table.table, SILVER.files + timedelta(hours=1))
    newest = commits_of(table.table)[-1]
    with spark_writes(table.table), pytest.raises(LakehouseError, match="is being written"):
        maintain(spark, table)
    assert maintain(spark, table).vacuumed
    assert vacuumed_to(local_folder(table.table) / "_delta_log") == newest
    spark.sql(f"VACUUM {table.table} LITE").collect()


def apply(changelog, number):
    begin = changelog.position
    changelog.insert({"id": number, "v": "a"})
    changelog.apply(begin)


def position(spark, table):
    return newest_own_commit(spark, table, silver_app(TASK, SOURCE, ITEMS.schema, ITEMS.table)).tag


def shard_position(spark, table, name):
    return newest_own_commit(spark, table, silver_app(TASK, SOURCE, *name)).tag


def properties(spark, table):
    return table_state(spark, table.table).properties
