"""The spec's host and port lead to another server with the same GTID history: silver stays exact, or the task stops."""

from pathlib import Path

import pytest

from dmdelta.cli.main import execute
from dmdelta.failpoint import CrashPoint
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.source.relay.relay_dir import newest_begin
from tests.support.check import assert_silver_equals_source
from tests.support.oracle import bronze_vs_binlog, bronze_vs_transactions
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
        write_steps(old, database, STEPS, keyless=True)
        task = Task(tmp_path, old, database, tables=TABLES)
        task.catch_up()
        bronze = spark.table(Lakehouse(root=str(task.root)).bronze)
        assert not bronze_vs_binlog(old, bronze, [database], tables=TABLES)

        write_steps(old, database, STEPS, lane=1, keyless=True)
        promote(new, old)
        old.kill()
        new.execute(*OLD_ROWS, database=database)
        write_steps(new, database, STEPS, lane=2, keyless=True)
        task.server = new
        task.catch_up()

        assert_silver_equals_source(spark, task)
        bronze = spark.table(Lakehouse(root=str(task.root)).bronze)
        assert {row["epoch"] for row in bronze.select("epoch").distinct().collect()} == {1, 2}
        wrong = bronze_vs_transactions(new, bronze, [database], TABLES)
        assert not wrong, "\n".join(wrong[:20])
        assert bronze_vs_transactions(new, bronze.where("epoch = 2"), [database], TABLES)  # finds gaps


@pytest.mark.parametrize("flavor", ["mysql80", pytest.param("mariadb", marks=pytest.mark.long)])
def test_a_full_load_does_not_continue_on_another_server(flavor: str, tmp_path: Path, spark, capsys) -> None:
    """It stops before the relay follows that server, and ends on the one on which it was planned."""
    with running(flavor) as old, running(flavor, server_id="2", log_slave_updates="ON") as new:
        database = old.fresh_database("switch")
        follow(new, old)
        for table in ("a", "b", "keyless"):
            key = "" if table == "keyless" else " PRIMARY KEY"
            old.execute(f"CREATE TABLE {table} (id INT{key})", f"INSERT INTO {table} VALUES (1), (2)", database=database)
        task = Task(tmp_path, old, database, mode="all")
        task.arm(CrashPoint.SNAPSHOT_BETWEEN_BATCHES, "error:StageFailed")
        assert ended(task) == 1
        old.execute("INSERT INTO a VALUES (3)", database=database)
        promote(new, old)

        capsys.readouterr()
        task.server = new
        assert ended(task) == 3
        assert "the full load of s1 cannot continue: it was planned on the server" in capsys.readouterr().err
        begin = newest_begin(task.relay / task.source_id)
        task.server = old
        assert ended(task) == 0
        assert newest_begin(task.relay / task.source_id) == begin
        assert_silver_equals_source(spark, task)


def ended(task: Task) -> int:
    """The exit code of a run of the task."""
    with task.environment():
        return execute(["run", str(task.write_spec()), "--until-caught-up"])
