"""Bronze repeats the position of an idle source before Delta removes the last commit that has it."""

import os
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from dmdelta.bronze.progress import landing_app
from dmdelta.cli.main import execute
from dmdelta.lakehouse.history import own_commits
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.session import is_provided
from tests.support.task import Task


def test_the_position_of_an_idle_source_is_repeated(mysql80, spark, tmp_path, monkeypatch):
    """Once, without rows; the log resumes after it, and replays do not mistake it for the begin of the log."""
    task = Task(tmp_path, mysql80, mysql80.fresh_database("idle"))
    task.start_here()
    mysql80.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", database=task.database)
    task.catch_up()
    lakehouse = Lakehouse(root=str(task.root))
    (landed,) = commits(spark, lakehouse, task)
    with monkeypatch.context() as patched:
        patched.setattr("dmdelta.engine.ingest.loop.KEEPALIVE_INTERVAL", timedelta(seconds=2))
        time.sleep(2)
        task.catch_up()
    said, before = commits(spark, lakehouse, task)
    assert before == landed
    assert (said.again, said.begin, said.end, said.version) == (True, landed.end, landed.end, landed.version + 1)
    task.catch_up()
    assert len(commits(spark, lakehouse, task)) == 2, "it was said a moment ago"

    mysql80.execute("INSERT INTO t VALUES (2), (3)", "DELETE FROM t WHERE id = 1", database=task.database)
    task.catch_up()
    silver = lakehouse.silver(task.database, "t")
    assert sorted(row.id for row in spark.table(silver).collect()) == [2, 3]
    assert spark.table(lakehouse.bronze).where("op = 'insert'").count() == 3
    assert commits(spark, lakehouse, task)[0].begin == said.end
    with task.environment():
        assert execute(["replay", str(task.spec), f"--table={task.database}.t", "--rebuild"]) == 0
    assert sorted(row.id for row in spark.table(silver).collect()) == [2, 3]


@pytest.mark.long
@pytest.mark.skipif(is_provided(), reason="only under a local root does maintenance keep the logs for hours")
def test_a_source_that_was_removed_for_hours_continues(mysql80, spark, tmp_path):
    """Meanwhile another source of the task lands, and the logs of bronze and silver are cleaned."""
    away = Task(tmp_path / "away", mysql80, mysql80.fresh_database("away"))
    left = replace(
        away, folder=tmp_path / "left", source_id="s2", database=mysql80.fresh_database("left"), lake=away.root
    )
    lakehouse = Lakehouse(root=str(away.root))
    for task in (away, left):
        task.folder.mkdir()
        task.start_here()
        mysql80.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", database=task.database)
        task.catch_up()
    (landed,) = commits(spark, lakehouse, away)
    for table in (lakehouse.bronze, lakehouse.silver(left.database, "t")):
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
    for number in (2, 3):
        age(left.root, 20 * 3600)
        mysql80.execute(f"INSERT INTO t VALUES ({number})", database=left.database)
        left.catch_up()
        for _ in range(2):
            with left.environment():
                assert execute(["maintain", str(left.spec)]) == 0
    first = min(int(file.stem) for file in (left.root / "bronze" / "_delta_log").glob("*.json"))
    assert first > 2, "the commits of the source are gone"
    assert commits(spark, lakehouse, away) == [replace(landed, again=True)]

    mysql80.execute("INSERT INTO t VALUES (2), (3)", "DELETE FROM t WHERE id = 1", database=away.database)
    away.catch_up()
    newest, _ = commits(spark, lakehouse, away)
    assert (newest.begin, newest.version) == (landed.end, landed.version + 1)
    assert sorted(row.id for row in spark.table(lakehouse.silver(away.database, "t")).collect()) == [2, 3]
    assert sorted(row.id for row in spark.table(lakehouse.silver(left.database, "t")).collect()) == [1, 2, 3]
    rows = spark.table(lakehouse.bronze).where("op IN ('insert', 'delete')")
    assert rows.count() == rows.select("source_id", "epoch", "seq", "row").distinct().count() == 7


def age(root: Path, seconds: float) -> None:
    """Make the files of a lakehouse older."""
    for file in root.rglob("*"):
        if file.is_file():
            then = file.stat().st_mtime - seconds
            os.utime(file, (then, then))


def commits(spark, lakehouse, task):
    """The tags of bronze's commits of the source, newest first."""
    return [commit.tag for commit in own_commits(spark, lakehouse.bronze, landing_app(task.name, task.source_id))]
