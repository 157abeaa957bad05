"""A running task maintains its tables while it writes them, and `dmdelta maintain` does so at once."""

import json
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from dmdelta.engine.maintenance.background import METADATA, BackgroundMaintenance
from dmdelta.lakehouse.layout import Lakehouse
from tests.integration.test_validator import wait_until
from tests.support.check import assert_silver_equals_source
from tests.support.loadable import fill
from tests.support.meddler import Meddler
from tests.support.task import Task


@pytest.fixture
def often(monkeypatch):
    """A table needs maintenance after a few commits."""
    monkeypatch.setattr("dmdelta.engine.maintenance.background.POLL_SECONDS", 0.5)
    monkeypatch.setattr("dmdelta.lakehouse.maintenance.table.COMPACT_FILES", 3)
    monkeypatch.setattr("dmdelta.engine.run.assembly.BackgroundMaintenance", partial(BackgroundMaintenance, worn=2))


@pytest.mark.long
@pytest.mark.usefixtures("often")
def test_tables_are_compacted_while_they_change(mysql80, spark, tmp_path):
    """Compacted while ranges follow each other closely, and stopped in between; `maintain` then compacts all tables."""
    tables = ("big", "notes", "pairs")
    task = Task(tmp_path, mysql80, mysql80.fresh_database("maintenance"), mode="all", tables=tables)
    fill(mysql80, task.database, 300, every_type=False)
    lakehouse = Lakehouse(root=str(task.root))
    places = [lakehouse.bronze, *(lakehouse.silver(task.database, table) for table in ("big", "notes"))]
    with Meddler(mysql80, task.database, 3), task.running():
        wait_until(lambda: all(map(is_maintained, places)), 300)
    task.catch_up()
    assert_silver_equals_source(spark, task)

    found = maintain(task, "--dry-run")
    assert {f"{task.database}.big", f"{task.database}.notes", "bronze"} <= found.keys()
    done = maintain(task)
    assert done[f"{task.database}.big"]["done"] == found[f"{task.database}.big"]["done"]
    assert not [name for name, table in maintain(task, "--dry-run").items() if "compact" in table["done"]]
    assert_silver_equals_source(spark, task)
    mysql80.execute("INSERT INTO notes VALUES ('after', 1)", database=task.database)
    task.catch_up()
    assert_silver_equals_source(spark, task)
    known = {f"t_{table.name}" for table in METADATA}
    assert {folder.name for folder in (task.root / "dm_meta").iterdir()} <= known


def is_maintained(table):
    """Its log has the commit; Spark is busy enough."""
    log = Path(table.split("`")[1], "_delta_log").glob("*.json")
    return any(re.search('"operation":"(OPTIMIZE|REORG)"', commit.read_text()) for commit in log)


def maintain(task, *arguments):
    """In a process of its own: it prints nothing but JSON, whatever Delta logs."""
    with task.environment():
        command = [str(Path(sys.executable).with_name("dmdelta")), "maintain", str(task.spec), "--json", *arguments]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    return {table["table"]: table for table in json.loads(ended.stdout)}


@pytest.mark.long
def test_old_files_of_an_idle_table_are_removed_after_a_restart(mysql80, spark, tmp_path, monkeypatch):
    """A run vacuums what an earlier run has replaced last, although the table does not change any more."""
    monkeypatch.setattr("dmdelta.engine.maintenance.background.POLL_SECONDS", 0.5)
    monkeypatch.setattr("dmdelta.engine.maintenance.background.SLOW_SECONDS", 1.0)
    task = Task(tmp_path, mysql80, mysql80.fresh_database("idle"), mode="all")
    mysql80.execute(
        "CREATE TABLE notes (id INT PRIMARY KEY, v INT)", "INSERT INTO notes VALUES (1, 1)", database=task.database
    )
    task.catch_up()
    mysql80.execute("UPDATE notes SET v = 2", database=task.database)
    task.catch_up()
    place = Lakehouse(root=str(task.root)).silver(task.database, "notes")
    spark.sql(f"ALTER TABLE {place} SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 0 hours')")
    folder = Path(place.split("`")[1])
    with task.running():
        wait_until(lambda: any("VACUUM END" in file.read_text() for file in folder.glob("_delta_log/*.json")), 120)
    assert spark.sql(f"SELECT id, v FROM {place}").collect() == [(1, 2)]
