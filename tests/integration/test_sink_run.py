"""The sink as part of `dmdelta run`: beside silver, without delaying it."""

import json
from unittest.mock import patch

import pytest

from dmdelta.bronze import landing
from dmdelta.cli.main import execute
from dmdelta.errors import EXIT_RETRIES_SPENT, SinkError
from dmdelta.lakehouse.layout import Lakehouse
from tests.support.check import assert_tables_equal_source
from tests.support.clock import DaysAgo
from tests.support.sharding import wait_until
from tests.support.sinking import table_differences
from tests.support.task import SinkTask

TABLE = "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20), UNIQUE (name))"


@pytest.fixture
def task(mysql80, mariadb, tmp_path):
    made = SinkTask(tmp_path, mysql80, mysql80.fresh_database("sunk"), target=mariadb)
    made.start_here()
    mysql80.execute(TABLE, "INSERT INTO t VALUES (1, 'a'), (2, 'b')", database=made.database)
    return made


def test_silver_and_target_resume_together(task, spark, capsys):
    """After a run both equal the source; the next run resumes each at its position; status shows the sink's.

    A filter does not ignore what only looks like its event without the type of the column before.
    """
    changes = {"schema-pattern": task.database, "events": ["modify column"], "action": "Ignore"}
    task.settings["filters"] = {"changes": changes}
    task.catch_up()
    assert table_differences(task.server, task.target, task.database, "t") == []
    task.server.execute(
        "UPDATE t SET name = 'c' WHERE id = 1",
        "ALTER TABLE t ADD n INT",
        "ALTER TABLE t MODIFY n BIGINT",
        "INSERT INTO t VALUES (3, 'a', 7000000000)",
        database=task.database,
    )
    task.catch_up()
    assert table_differences(task.server, task.target, task.database, "t") == []
    assert_tables_equal_source(spark, task, ["t"])
    capsys.readouterr()
    with task.environment():
        assert execute(["status", str(task.spec), "--json"]) == 0
    (source,) = json.loads(capsys.readouterr().out)["sources"]
    assert source["sunk_to"] == source["landed_to"]
    assert source["sink_lag_bytes"] == 0


@pytest.mark.parametrize("flush", ["sync", pytest.param("async", marks=pytest.mark.long)])
def test_the_interval_of_a_running_sink_is_changed(task, spark, flush):
    """With either flush: rows reach the target at once, the checkpoint only after `dmdelta update` shortens an hour."""
    task.sink = {"flush": flush}
    task.catch_up()
    points = f"SELECT binlog_name, binlog_pos, reason FROM dm_{task.database}.t_sink_points WHERE is_global = 1"
    before = task.target.query(points)
    assert [reason for *_, reason in before] == ["stop"]
    task.syncer["checkpoint-flush-interval"] = "1h"
    with task.running():
        task.server.execute("INSERT INTO t VALUES (4, 'd')", database=task.database)
        wait_until(lambda: not table_differences(task.server, task.target, task.database, "t"), 120)
        assert task.target.query(points) == before
        task.syncer["checkpoint-flush-interval"] = "1s"
        assert execute(["update", str(task.write_spec())]) == 0
        wait_until(lambda: task.target.query(points) != before, 120)
        assert [reason for *_, reason in task.target.query(points)] == ["interval"]


def test_the_start_warns_of_risks(task, spark, capsys):
    """Safe mode for the whole run, a table without a key, and a collation that the target lacks: with the next step."""
    task.server.execute("CREATE TABLE bare (v INT)", database=task.database)
    task.catch_up("--safe-mode")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    found = [line["context"] for line in lines if line["msg"] == "preflight" and "concerns" in line["context"]]
    named = {(one["concerns"], one["check"]) for one in found}
    assert named == {("spec", "safe_mode"), ("sink", "primary_key"), ("sink", "collation")}
    assert any(f"{task.database}.bare" in one["finding"] for one in found)
    assert all(one["fix"] for one in found)


def test_changes_that_the_target_lacks_do_not_expire(task, spark, capsys):
    """Bronze keeps changes that a sink lacks; a sink that starts too late stops alone, with the reason."""
    task.settings["maintenance"] = {"bronze-days": 1}
    with patch.object(landing, "datetime", DaysAgo):
        task.catch_up()
    bronze = Lakehouse(root=str(task.root)).bronze
    late = {"metadata": f"late_{task.database}"}
    with task.environment():
        task.sink = late
        assert execute(["maintain", str(task.write_spec())]) == 0
        assert spark.table(bronze).where("op = 'insert'").count() == 2
        task.sink = {}
        assert execute(["maintain", str(task.write_spec())]) == 0
        assert spark.table(bronze).where("op = 'insert'").isEmpty()
        task.sink = late
        capsys.readouterr()
        assert execute(["run", str(task.write_spec()), "--until-caught-up"]) == SinkError.exit_code
    assert "have expired from bronze" in capsys.readouterr().err


@pytest.mark.long
def test_a_target_that_does_not_answer_ends_a_run_that_waits_for_nothing_else(task, spark):
    """Exit code 75, and silver has everything; the next run continues."""
    task.sink = {"port": 1}
    with task.environment():
        assert execute(["run", str(task.write_spec()), "--until-caught-up"]) == EXIT_RETRIES_SPENT
    assert spark.read.format("delta").load(f"{task.root}/silver/{task.database}/t").count() == 2
    task.sink = {}
    task.catch_up()
    assert table_differences(task.server, task.target, task.database, "t") == []


def test_refused_rows_stop_the_sink_alone(task, spark):
    """A duplicate key in the target: silver equals the source; the run reports row and position."""
    task.catch_up()
    task.target.execute("INSERT INTO t VALUES (9, 'mine')", database=task.database)
    task.server.execute("INSERT INTO t VALUES (9, 'theirs')", database=task.database)
    with task.environment():
        assert execute(["run", str(task.write_spec()), "--until-caught-up"]) == 7
    rows = spark.read.format("delta").load(f"{task.root}/silver/{task.database}/t")
    assert rows.where("id = 9").count() == 1
    task.target.execute("DELETE FROM t WHERE id = 9", database=task.database)
    task.catch_up()
    assert table_differences(task.server, task.target, task.database, "t") == []
