"""A source of which nothing comes for long says in bronze where it is, before Delta forgets its last commit."""

import time
from datetime import timedelta

from dmdelta.bronze.landing import landing_app
from dmdelta.cli.main import execute
from dmdelta.lakehouse.history import own_commits
from dmdelta.lakehouse.layout import Lakehouse
from tests.support.task import Task


def test_where_an_idle_source_is_stays_known(mysql80, spark, tmp_path, monkeypatch):
    """Said again, once, without rows; the log goes on behind it, and replays do not take it for a beginning."""
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


def commits(spark, lakehouse, task):
    """The tags of bronze's commits of the source, newest first."""
    return [commit.tag for commit in own_commits(spark, lakehouse.bronze, landing_app(task.name, task.source_id))]
