"""Tables left incomplete by a killed process are completed by the next one."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import types as T  # noqa: N812 - Spark's convention

from dmdelta.bronze.landing import open_bronze
from dmdelta.errors import ForeignTable
from dmdelta.lakehouse import creation
from dmdelta.lakehouse.metadata_table import create_metadata
from dmdelta.lakehouse.session import clone_session
from dmdelta.lakehouse.tables import table_state
from tests.support.changelog import ITEMS, TASK, Changelog


def half_made(table):
    """The state after CREATE TABLE is killed before its commit."""
    folder = Path(table.split("`")[1]) / "_delta_log" / "_staged_commits"
    folder.mkdir(parents=True)


def test_incomplete_bronze_silver_and_metadata_are_completed(spark, lakehouse):
    """Each is complete: its owner, its properties, and the location of its rows."""
    metadata = lakehouse.metadata("t_half")
    silver = lakehouse.silver(ITEMS.schema, ITEMS.table)
    for table in (lakehouse.bronze, metadata, silver):
        half_made(table)
        assert table_state(spark, table) is None
    open_bronze(spark, lakehouse.bronze, TASK)
    assert table_state(spark, lakehouse.bronze).properties["delta.appendOnly"] == "true"
    columns = {"a": T.IntegerType()}
    assert create_metadata(spark, lakehouse, metadata, columns, TASK) is False
    assert create_metadata(spark, lakehouse, metadata, columns, TASK) is True
    assert spark.table(metadata).columns == ["a"]
    changelog = Changelog(spark, lakehouse)
    begin = changelog.position
    changelog.tell(ITEMS)
    changelog.insert({"id": 1, "v": "a"})
    changelog.apply(begin)
    assert changelog.silver() == [(1, "a")]
    assert table_state(spark, silver).properties["delta.columnMapping.mode"] == "name"
    (detail,) = spark.sql(f"DESCRIBE DETAIL {silver}").collect()
    assert (detail.clusteringColumns, detail.partitionColumns) == (["id"], [])
    begin = changelog.position
    changelog.delete({"id": 1, "v": "a"}), changelog.insert({"id": 2, "v": "b"})
    changelog.apply(begin)
    assert changelog.silver() == [(2, "b")]


def test_a_second_kill_leaves_no_table(spark, lakehouse, monkeypatch):
    """Killed again during completion, with any columns: still no table, and completed by the next run."""
    metadata = lakehouse.metadata("t_twice")
    half_made(metadata)
    passed = []

    def die_at_the_last_commit(*arguments):
        passed.append(arguments)
        if len(passed) == 2:
            raise KeyboardInterrupt
        return tagged(*arguments)

    tagged = creation._tagged
    new = creation.NewTable({"b": "STRING", "c": "INT"}, {"dmdelta.kind": "old"}, cluster=["c"])
    monkeypatch.setattr(creation, "_tagged", die_at_the_last_commit)
    with pytest.raises(KeyboardInterrupt):
        creation.create_table(spark, metadata, new)
    monkeypatch.setattr(creation, "_tagged", tagged)
    assert spark.table(metadata).columns == ["b", "c"]
    assert table_state(spark, metadata) is None
    assert create_metadata(spark, lakehouse, metadata, {"a": T.IntegerType()}, TASK) is False
    assert create_metadata(spark, lakehouse, metadata, {"a": T.IntegerType()}, TASK) is True
    assert spark.table(metadata).columns == ["a"]
    (detail,) = spark.sql(f"DESCRIBE DETAIL {metadata}").collect()
    assert detail.clusteringColumns == []
    assert spark.conf.get("spark.databricks.delta.commitInfo.userMetadata", "") == ""


def test_threads_create_a_table_once(spark, lakehouse):
    """The sources of a task create shared tables at the same moment: one creates, the others find them."""
    columns, sessions = {"a": T.IntegerType()}, [clone_session(spark) for _ in range(4)]
    for number in range(5):
        metadata = lakehouse.metadata(f"t_shared_{number}")
        with ThreadPoolExecutor(len(sessions)) as pool:
            found = list(
                pool.map(lambda own, name=metadata: create_metadata(own, lakehouse, name, columns, TASK), sessions)
            )
        assert sorted(found) == [False, True, True, True]
        assert spark.sql(f"DESCRIBE HISTORY {metadata}").count() == 1


def test_foreign_files_are_kept(spark, lakehouse):
    """A folder with files is not an incomplete table."""
    metadata = lakehouse.metadata("t_files")
    folder = Path(metadata.split("`")[1])
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "notes.txt").write_text("mine")
    with pytest.raises(ForeignTable):
        create_metadata(spark, lakehouse, metadata, {"a": T.IntegerType()}, TASK)
    assert not (folder / "_delta_log").exists()
