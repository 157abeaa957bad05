"""Kills during a compaction and during a VACUUM: files without a commit, and old files that are partly removed."""

import time
from pathlib import Path

import pytest

from dmdelta.lakehouse.retention import FILE_RETENTION
from tests.crash.rows import INSERT, TABLES, UPDATE
from tests.support.check import assert_exactly_once
from tests.support.task import Task

TRIES = 6
"""The awaited state lasts milliseconds: sometimes the commit is faster than the kill."""


@pytest.fixture
def maintained(mysql80, tmp_path):
    """A task with some rows in silver, and the start of its log."""
    task = Task(tmp_path, mysql80, mysql80.fresh_database("maintenance"))
    task.start_here()
    file, offset, _ = mysql80.position()
    mysql80.execute(*TABLES, database=task.database)
    task.catch_up()
    return task, (file, offset)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("action", ["OPTIMIZE", "VACUUM"])
def test_a_kill_during_maintenance_changes_no_row(maintained, spark, action):
    """Silver = source, bronze once, before and after the next maintenance; leftover files do no harm."""
    task, since = maintained
    if action == "VACUUM":
        wear(task, 100)
        spark.sql(f"ALTER TABLE delta.`{folder(task)}` SET TBLPROPERTIES ('{FILE_RETENTION}' = '0 seconds')")
    for number in range(1, TRIES + 1):
        wear(task, 1000 * number)
        kill_maintenance(task, comes=action == "OPTIMIZE")
        (newest,) = spark.sql(f"DESCRIBE HISTORY delta.`{folder(task)}` LIMIT 1").collect()
        assert_exactly_once(spark, task, since)
        if newest.operation == ("VACUUM START" if action == "VACUUM" else "WRITE"):
            break
    else:
        pytest.fail(f"no kill of {TRIES} came in the midst of {action}")
    wear(task, 1000 * (TRIES + 1))
    maintain(task)
    assert_exactly_once(spark, task, since)


def wear(task: Task, number: int) -> None:
    """Write files that can be compacted, and deleted rows."""
    for statement in (INSERT.replace("{n}", str(number)), UPDATE, "UPDATE keyed SET w = 'z'"):
        task.server.execute(statement, database=task.database)
        task.catch_up()


def maintain(task: Task) -> None:
    with task.process(command="maintain") as process:
        assert process.wait(180) == 0, process.log()


def kill_maintenance(task: Task, *, comes: bool) -> None:
    """Kill `dmdelta maintain` as soon as a file appears or disappears."""
    before = files(task)
    with task.process(command="maintain") as process:
        while process.poll() is None and not (files(task) - before if comes else before - files(task)):
            time.sleep(0.001)
        process.kill()


def folder(task: Task) -> Path:
    return task.root / "silver" / task.database / "keyed"


def files(task: Task) -> set[str]:
    """Files of rows and of deletion vectors."""
    return {path.name for path in folder(task).rglob("*") if path.is_file() and "_delta_log" not in path.parts}
