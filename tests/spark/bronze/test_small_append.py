"""Small batches land with delta-rs under a local root, and with Spark while Spark writes bronze: the same commits."""

import json
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from dmdelta.bronze.datasource import register
from dmdelta.bronze.landing import land, open_bronze, plan_landing
from dmdelta.bronze.progress import newest_landed
from dmdelta.bronze.schema import PARTITION_COLUMN
from dmdelta.changelog.context import SourceContext
from dmdelta.errors import Fenced
from dmdelta.lakehouse.access.interface import PartitionBound
from dmdelta.lakehouse.access.local_root import local_folder
from dmdelta.lakehouse.access.table_writers import spark_writes
from dmdelta.lakehouse.history import spark_commits
from dmdelta.lakehouse.maintenance.old_commits import Content, MaintainedTable
from dmdelta.lakehouse.maintenance.table import MaintenancePlan, maintain_table
from dmdelta.lakehouse.session import is_provided
from dmdelta.rules import BlockAllowList, SourceRules
from dmdelta.segments import list_segments
from tests.support.golden import GOLDEN

pytestmark = pytest.mark.skipif(is_provided(), reason="files of a provided Spark may be on another machine")


@pytest.fixture
def source(spark, lakehouse):
    register(spark)
    open_bronze(spark, lakehouse.bronze, "task")
    rules = SourceRules("mysql80", BlockAllowList(do_dbs=("golden",)))
    return SourceContext(lakehouse, "task", "mysql80", "first", "mysql", rules)


def next_batch(landed):
    segments = list_segments(GOLDEN / "mysql80", "mysql80")
    return plan_landing([one for one in segments if landed is None or one.begin_position >= landed.end][:1], landed)


def writers(bronze):
    """The engines of bronze's commits, oldest first."""
    log = local_folder(bronze) / "_delta_log"
    lines = [json.loads(line) for file in sorted(log.glob("*.json")) for line in file.read_text().splitlines()]
    return [line["commitInfo"]["engineInfo"].split(":")[0].split("/")[0] for line in lines if "commitInfo" in line]


def writing(by, bronze):
    """Spark appends while it has another writer; else delta-rs does."""
    return spark_writes(bronze) if by == "Spark" else nullcontext()


def test_both_land_one_log(spark, source):
    """Each continues where the other one ended, and Spark reads all rows and both kinds of commits."""
    landed = None
    for by in ("delta-rs", "Spark", "delta-rs"):
        with writing(by, source.bronze):
            landed = land(spark, source, next_batch(landed), landed)
        assert newest_landed(spark, source) == landed
    made = spark.table(source.bronze)
    rows = made.count()
    assert rows == made.select("epoch", "seq", "row").distinct().count() > 0
    assert made.where("after IS NOT NULL AND to_json(after) IS NULL").isEmpty()
    assert writers(source.bronze) == ["Apache-Spark", "delta-rs", "Apache-Spark", "delta-rs"]
    tags = [json.loads(commit.user_metadata) for commit in spark_commits(spark, source.bronze, 3)]
    assert [tag["version"] for tag in tags] == [3, 2, 1]


@pytest.mark.parametrize("by", ["delta-rs", "Spark"])
def test_small_files_are_compacted_and_landing_continues(spark, source, by):
    """By Spark while Spark writes bronze; with the same rows, which readers of both kinds of commits find."""
    landed = None
    for _ in range(2):
        landed = land(spark, source, next_batch(landed), landed)
    before, today = rows_of(spark, source.bronze), datetime.now(timezone.utc).date()
    for first, compacted in ((today + timedelta(days=1), (0, 0)), (today - timedelta(days=1), (2, 1))):
        with writing(by, source.bronze):
            bronze, bound = MaintainedTable(source.bronze, Content.BRONZE), PartitionBound(PARTITION_COLUMN, first)
            result = maintain_table(spark, bronze, MaintenancePlan(compact=True), bound)
        assert (result.compacted_files, result.new_files) == compacted
        assert rows_of(spark, source.bronze) == before
    assert writers(source.bronze)[-1] == {"Spark": "Apache-Spark"}.get(by, by)
    assert newest_landed(spark, source) == landed
    following = land(spark, source, next_batch(landed), landed)
    assert newest_landed(spark, source) == following
    assert len(rows_of(spark, source.bronze)) > len(before)


def rows_of(spark, bronze):
    columns = ("epoch", "seq", "row", "op", "to_json(before) AS before", "to_json(after) AS after")
    return sorted(map(tuple, spark.table(bronze).selectExpr(*columns).collect()), key=lambda row: row[:3])


@pytest.mark.parametrize(("first", "second"), [("delta-rs", "Spark"), ("Spark", "delta-rs"), ("delta-rs", "delta-rs")])
def test_a_second_runner_is_fenced_out(spark, source, first, second):
    batch = next_batch(None)
    with writing(first, source.bronze):
        land(spark, source, batch, None)
    count = spark.table(source.bronze).count()
    with writing(second, source.bronze), pytest.raises(Fenced):
        land(spark, replace(source, run="second"), batch, None)
    assert spark.table(source.bronze).count() == count


def test_a_bronze_with_another_feature_is_sparks(spark, source):
    spark.sql(f"ALTER TABLE {source.bronze} SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')")
    land(spark, source, next_batch(None), None)
    assert writers(source.bronze)[-1] == "Apache-Spark"
