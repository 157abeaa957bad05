"""OPTIMIZE, the purge and VACUUM on silver tables: fewer files, the same rows, and the table's position is still known."""

from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq
import pytest

from dmdelta.lakehouse.history import newest_own_commit
from dmdelta.lakehouse.maintenance.old_commits import Content, MaintainedTable, maintained_silver
from dmdelta.lakehouse.maintenance.table import MaintenancePlan, maintain_table, plan_maintenance, read_table_health
from dmdelta.lakehouse.metadata_table import create_metadata
from dmdelta.lakehouse.session import is_provided, maintenance_session
from dmdelta.silver.apply.quarantine import COLUMNS
from dmdelta.silver.table.target import silver_app
from tests.support.changelog import ITEMS, SOURCE, TASK, Changelog


def test_a_table_is_compacted_purged_vacuumed_and_continues(spark, lakehouse):
    """As its history implies: after each maintenance a change is applied at the right position, exactly once."""
    changelog = Changelog(spark, lakehouse)
    table = lakehouse.silver(ITEMS.schema, ITEMS.table)
    assert read_table_health(spark, maintained_silver(spark, table)) is None
    begin = changelog.position
    changelog.tell(ITEMS)
    for number in range(20):
        changelog.insert({"id": number, "v": "a"})
    changelog.apply(begin)
    for number in range(3):
        begin = changelog.position
        changelog.update({"id": number, "v": "a"}, {"id": number, "v": "b"})
        changelog.apply(begin)
    begin = changelog.position
    for number in range(10, 16):
        changelog.delete({"id": number, "v": "a"})
    changelog.apply(begin)
    expected, where = changelog.silver(), position(spark, changelog)
    wear = read_table_health(spark, maintained_silver(spark, table))
    assert (wear.new_files >= 4, wear.dead_rows, wear.rows, wear.vacuumed_at) == (True, 9, 14, None)
    plan = plan_maintenance(wear, datetime.now(timezone.utc), thorough=True)
    assert plan.actions == ["purge", "compact", "vacuum"]

    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 0 hours')")
    maintaining = maintenance_session(spark)
    done = maintain_table(maintaining, maintained_silver(spark, table), plan)
    assert done.purged_files >= 1
    assert done.vacuumed
    assert changelog.silver() == expected
    assert position(spark, changelog) == where
    assert files(table) == in_table(spark, table) == 1, "old files are gone"
    after = read_table_health(spark, maintained_silver(spark, table))
    assert (after.new_files, after.dead_rows, after.rows) == (0, 0, 14)
    assert after.vacuumed_at is not None

    begin = changelog.position
    changelog.insert({"id": 100, "v": "new"})
    changelog.apply(begin)
    assert changelog.silver() == sorted([*expected, (100, "new")], key=repr)
    assert position(spark, changelog) > where


def test_well_clustered_files_are_not_rewritten(spark, lakehouse):
    """Each compaction costs the new data, not the whole table."""
    changelog = Changelog(spark, lakehouse)
    table = lakehouse.silver(ITEMS.schema, ITEMS.table)
    begin = changelog.position
    changelog.tell(ITEMS)
    for number in range(50):
        changelog.insert({"id": number, "v": "x" * 80})
    changelog.apply(begin)
    maintaining = maintenance_session(spark)
    assert int(maintaining.conf.get(CUBE)) > 1 << 20
    maintaining.conf.set(CUBE, "1000")
    only = MaintenancePlan(compact=True)
    assert maintain_table(maintaining, maintained_silver(spark, table), only).compacted_files >= 1
    for number in (60, 61):
        begin = changelog.position
        changelog.insert({"id": number, "v": "late"})
        changelog.apply(begin)
    done = maintain_table(maintaining, maintained_silver(spark, table), only)
    assert (done.compacted_files, done.new_files) == (2, 1)


@pytest.mark.parametrize("clustered", ["", "CLUSTER BY (id)"])
def test_a_purge_leaves_no_dead_row(spark, lakehouse, clustered):
    """Not in a large group of files that were clustered together, and not in a table without clustering."""
    table, maintaining = lakehouse.silver(ITEMS.schema, ITEMS.table), maintenance_session(spark)
    maintaining.conf.set(CUBE, "1000")
    spark.sql(f"CREATE TABLE {table} (id BIGINT, v STRING) USING delta {clustered} TBLPROPERTIES ({VECTORS})")
    for first in (0, 100):
        spark.sql(f"INSERT INTO {table} SELECT id, repeat(id, 20) FROM range({first}, {first + 100})")
        maintaining.sql(f"OPTIMIZE {table}")
    spark.sql(f"INSERT INTO {table} VALUES (200, 'late')")
    spark.sql(f"DELETE FROM {table} WHERE id < 100 AND id % 2 = 0")
    maintained = MaintainedTable(table, Content.SILVER)
    wear = read_table_health(spark, maintained)
    assert (wear.dead_rows, plan_maintenance(wear, datetime.now(timezone.utc)).purge) == (50, True)
    assert physical_rows(spark, table) == 201
    assert maintain_table(maintaining, maintained, MaintenancePlan(purge=True)).purged_files > 0
    assert physical_rows(spark, table) == spark.table(table).count() == 151
    assert maintaining.conf.get(CUBE) == "1000"
    if clustered:
        assert read_table_health(spark, maintained).dead_rows == 0


@pytest.mark.parametrize("content", [Content.QUARANTINE, Content.BRONZE])
def test_a_quarantine_is_compacted_by_spark(spark, lakehouse, content):
    """As all its writers are; delta-rs compacts tables whose writers tell it when they write, if it can open them."""
    writer = "delta-rs" if content is Content.BRONZE and not is_provided() else "Apache-Spark"
    table = lakehouse.metadata("t_compacted")
    create_metadata(spark, lakehouse, table, COLUMNS, TASK)
    for key in ("a", "b"):
        row = spark.sql(f"SELECT '{key}' AS row_key, parse_json('1') AS image")
        row.write.format("delta").mode("append").saveAsTable(table)
    result = maintain_table(maintenance_session(spark), MaintainedTable(table, content), MaintenancePlan(compact=True))
    assert (result.compacted_files, result.new_files) == (2, 1)
    newest = spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").first()
    assert newest["operation"] == "OPTIMIZE"
    assert newest["engineInfo"].startswith(writer)
    assert spark.table(table).count() == 2


CUBE = "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize.threshold"
VECTORS = "'delta.enableDeletionVectors' = 'true'"


def physical_rows(spark, table):
    """The rows in a table's files, hidden ones included."""
    files = [row[0] for row in spark.sql(f"SELECT DISTINCT _metadata.file_path FROM {table}").collect()]
    return sum(pq.read_metadata(unquote(urlparse(file).path)).num_rows for file in files)


def position(spark, changelog):
    table = changelog.lakehouse.silver(ITEMS.schema, ITEMS.table)
    return newest_own_commit(spark, table, silver_app(TASK, SOURCE, ITEMS.schema, ITEMS.table)).tag.end


def in_table(spark, table):
    return spark.sql(f"SELECT DISTINCT _metadata.file_path FROM {table}").count()


def files(table):
    folder = Path(table.split("`")[1])
    return len([file for file in folder.rglob("*.parquet") if "_delta_log" not in file.parts])
