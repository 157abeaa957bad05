"""The spec's host and port lead to another server with the same GTID history: silver stays exact, or the task stops."""

from dataclasses import replace
from pathlib import Path

import pytest

from dmdelta.cli.main import execute
from dmdelta.config import load_spec
from dmdelta.engine.task.source import open_task_source
from dmdelta.engine.validation.fix import fix_rows
from dmdelta.errors import QualityError
from dmdelta.failpoint import CrashPoint
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.quality.reconcile import plan_comparison
from dmdelta.segments import list_segments
from dmdelta.source.relay.relay_dir import newest_begin
from dmdelta.source.snapshot.consistent_read import open_consistent
from dmdelta.source.snapshot.planner import snapshot_end
from tests.support.check import assert_silver_equals_source
from tests.support.oracle import bronze_vs_binlog, bronze_vs_transactions
from tests.support.relaying import catch_up, endpoint_of, relay_task, wait_until
from tests.support.replication import follow, promote
from tests.support.servers import running
from tests.support.task import Task
from tests.support.workload import create_tables, write_steps

TABLES = ("orders", "order_items", "inventory", "page_views")
STEPS = 40
OLD_ROWS = (
    "UPDATE orders SET id = id + 7000000 WHERE id % 2 = 0",
    "UPDATE order_items SET order_id = order_id + 7000000 WHERE order_id % 2 = 0",
    "UPDATE inventory SET warehouse = 12 WHERE warehouse = 2",
    "DELETE FROM orders WHERE id % 5 = 0",
    "UPDATE inventory SET quantity = quantity + 1 WHERE warehouse = 1",
    "UPDATE page_views SET visitor = 7 LIMIT 3",
    "DELETE FROM page_views LIMIT 2",
)
"""The second server's changes of rows that the first one wrote: with changed keys, and without a key."""


@pytest.mark.parametrize("flavor", ["mysql80", pytest.param("mariadb", marks=pytest.mark.long)])
def test_silver_stays_exact_when_another_server_takes_over(flavor: str, tmp_path: Path, spark) -> None:
    """Unread transactions of the first server's log come from the second server: once, and in a new epoch."""
    with running(flavor) as old, running(flavor, server_id="2", log_slave_updates="ON") as new:
        database = old.fresh_database("switch")
        follow(new, old)
        create_tables(old, database, keyless=True)
        task = Task(tmp_path, old, database, tables=TABLES)
        catch_up(replace(relay_task(old, task.relay), source_id=task.source_id))  # a first segment, to be purged
        write_steps(old, database, STEPS, keyless=True)
        task.catch_up()
        bronze = spark.table(Lakehouse(root=str(task.root)).bronze)
        assert not bronze_vs_binlog(old, bronze, [database], tables=TABLES)
        with task.environment():
            assert execute(["relay", "purge", str(task.spec)]) == 0

        write_steps(old, database, STEPS, lane=1, keyless=True)
        promote(new, old)
        old.kill()
        new.execute(*OLD_ROWS, database=database)
        write_steps(new, database, STEPS, lane=2, keyless=True)
        task.server = new
        record = task.relay / task.source_id / "landed.json"
        record.rename(tmp_path / "landed.json")  # as in a folder that an earlier version has purged
        with task.environment():
            assert execute(["check", str(task.write_spec())]) == 0  # it needs the GTIDs of the purged segments
        (tmp_path / "landed.json").rename(record)
        task.catch_up()

        assert_silver_equals_source(spark, task)
        bronze = spark.table(Lakehouse(root=str(task.root)).bronze)
        assert {row["epoch"] for row in bronze.select("epoch").distinct().collect()} == {1, 2}
        wrong = bronze_vs_transactions(new, bronze, [database], TABLES)
        assert not wrong, "\n".join(wrong[:20])
        assert bronze_vs_transactions(new, bronze.where("epoch = 2"), [database], TABLES)  # finds gaps


@pytest.mark.long
@pytest.mark.parametrize("flavor", ["mysql80", "mariadb"])
def test_a_full_load_does_not_continue_on_another_server(flavor: str, tmp_path: Path, spark, capsys) -> None:
    """It stops before the relay follows that server, and ends on the one on which it was planned."""
    with running(flavor) as old, running(flavor, server_id="2", log_slave_updates="ON") as new:
        database = old.fresh_database("switch")
        follow(new, old)
        for table in ("a", "b", "keyless"):
            key = "" if table == "keyless" else " PRIMARY KEY"
            old.execute(f"CREATE TABLE {table} (id INT{key})", f"INSERT INTO {table} VALUES (1)", database=database)
        task = Task(tmp_path, old, database, mode="all")
        task.arm(CrashPoint.SNAPSHOT_BETWEEN_BATCHES, "error:StageFailed")
        assert ended(task) == 1
        old.execute("INSERT INTO a VALUES (3)", database=database)
        promote(new, old)

        capsys.readouterr()
        task.server = new
        assert ended(task) == 3
        assert "the full load of s1 cannot continue: it was planned on the server" in capsys.readouterr().err
        task.server = old
        assert ended(task) == 0
        begin = newest_begin(task.relay / task.source_id)
        assert begin is not None
        assert (begin.epoch, begin.server_uuid) == (2, snapshot_end(endpoint_of(old)).server_uuid)
        assert_silver_equals_source(spark, task)


@pytest.mark.long
@pytest.mark.parametrize("flavor", ["mysql80", "mariadb"])
def test_a_server_takes_over_before_the_log_has_passed_the_end_of_a_load(flavor: str, tmp_path: Path, spark) -> None:
    """The load's readers have seen rows that the relay has not received from the first server: they are not doubled."""
    with running(flavor) as old, running(flavor, server_id="2", log_slave_updates="ON") as new:
        database = old.fresh_database("switch")
        follow(new, old)
        for table in ("a", "b", "c"):
            old.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY)", database=database)
            old.execute(f"INSERT INTO {table} VALUES (1)", database=database)
        task = Task(tmp_path, old, database, mode="all")
        task.arm(CrashPoint.SNAPSHOT_CHUNK_LOW, "hang")
        with task.process("--until-caught-up") as process:
            wait_until(lambda: task.hangs.exists() or process.poll() is not None, 90)
            for table in ("a", "b", "c"):  # of these, one is not read yet
                old.execute(f"INSERT INTO {table} VALUES (2)", database=database)
            task.arm(CrashPoint.SNAPSHOT_END)
            task.hangs.unlink()
            assert process.wait(90) != 0
        promote(new, old)
        forget_relayed(task)

        task.server = new
        new.execute("INSERT INTO a VALUES (4)", database=database)
        assert ended(task) == 0
        begin = newest_begin(task.relay / task.source_id)
        assert begin is not None
        assert begin.epoch == 3
        assert_silver_equals_source(spark, task)


def forget_relayed(task: Task) -> None:
    """The relay has received nothing since the beginning of its epoch: it was slower than the load."""
    segments = list_segments(task.relay / task.source_id, task.source_id)
    assert segments
    for segment in segments:
        Path(segment.path).unlink()


def test_rows_of_a_server_that_the_task_does_not_follow_are_not_compared(tmp_path: Path, spark, capsys) -> None:
    """Its positions are not in the task's log: `validate` says so, and `--fix` changes nothing."""
    with running("mysql80") as old, running("mysql80", server_id="2", log_slave_updates="ON") as new:
        database = old.fresh_database("switch")
        follow(new, old)
        old.execute("CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1), (2)", database=database)
        task = Task(tmp_path, old, database, mode="all", tables=("a",))
        task.catch_up()
        promote(new, old)
        capsys.readouterr()
        task.server = new
        with task.environment():
            assert execute(["validate", str(task.write_spec()), "--wait", "0"]) == 6
            assert "whose log the task does not follow" in capsys.readouterr().err
            source = open_task_source(load_spec(task.spec), None)
            versions = [row["version"] for row in silver_commits(spark, task)]
            with open_consistent(endpoint_of(new), (database, "a"), "mysql", 1) as table:
                comparison = plan_comparison(table.schema, ["id"], "mysql", table.rows)
                for endpoint in (endpoint_of(new), endpoint_of(old)):
                    with pytest.raises(QualityError, match=r"\.a is not repaired: .* leads to the server"):
                        fix_rows(source, endpoint, comparison, table, ["1"])
        assert [row["version"] for row in silver_commits(spark, task)] == versions


def silver_commits(spark, task: Task):
    silver = Lakehouse(root=str(task.root)).silver(task.database, "a")
    return spark.sql(f"DESCRIBE HISTORY {silver}").collect()


def ended(task: Task) -> int:
    """The exit code of a run of the task."""
    with task.environment():
        return execute(["run", str(task.write_spec()), "--until-caught-up"])
