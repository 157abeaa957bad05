"""Ad-hoc snapshots: tables join later, and tables are read again, while the log of the others is followed."""

import json

import pytest

from dmdelta.cli.main import execute
from dmdelta.engine.snapshot.plan import PlannedSnapshot
from dmdelta.engine.snapshot.store import ChunkStore
from dmdelta.failpoint import CrashPoint
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.model.position import Position
from dmdelta.source.snapshot.planner import plan_snapshot
from tests.integration.test_full_load import chunks_of
from tests.support.check import assert_silver_equals_source
from tests.support.loadable import fill
from tests.support.meddler import Meddler
from tests.support.proxy import Proxy
from tests.support.relaying import endpoint_of, wait_until
from tests.support.replication import follow, promote
from tests.support.servers import running
from tests.support.task import Task


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("server", ["mysql80", "mysql57", "mariadb"])
def test_tables_join_later_and_are_read_again_while_they_change(server, request, spark, tmp_path, capsys):
    """All types and kinds of keys: silver equals the source, whatever it held before, and the log resumes after it."""
    source = request.getfixturevalue(server)
    task = Task(tmp_path, source, source.fresh_database("adhoc"), mode="all", tables=("words", "states", "notes"))
    fill(source, task.database, 3_000)
    task.catch_up()

    lakehouse = Lakehouse(root=str(task.root))
    spark.sql(f"DELETE FROM {lakehouse.silver(task.database, 'notes')} WHERE n % 2 = 0")
    spark.sql(f"ALTER TABLE {lakehouse.silver(task.database, 'words')} DROP COLUMN n")
    # Silver cannot follow this statement: the snapshot reads the table after it.
    source.execute(
        "ALTER TABLE states ADD made TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)", database=task.database
    )
    names = [f"{task.database}.{table}" for table in ("notes", "states", "words")]
    task.tables = ()
    task.write_spec()
    capsys.readouterr()
    with task.environment():
        assert execute(["snapshot", str(task.spec), *(f"--table={name}" for name in names), "--json"]) == 0
    assert [line["table"] for line in json.loads(capsys.readouterr().out)] == names

    with Meddler(source, task.database, 8):
        task.catch_up()
    task.catch_up()
    assert_silver_equals_source(spark, task)
    recorded = chunks_of(spark, task)
    assert recorded["planned"] == recorded["landed"] > len(recorded["tables"])


def test_remove_meta_loads_the_tables_again(mysql80, spark, tmp_path):
    """--remove-meta in task-mode all: silver equals the source again, and the log resumes in a new epoch."""
    task = Task(tmp_path, mysql80, mysql80.fresh_database("adhoc"), mode="all")
    for table in ("a", "b", "c"):
        mysql80.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)", database=task.database)
        mysql80.execute(f"INSERT INTO {table} VALUES (1, 1), (2, 2)", database=task.database)
    task.catch_up()
    lakehouse = Lakehouse(root=str(task.root))
    spark.sql(f"DELETE FROM {lakehouse.silver(task.database, 'b')} WHERE id = 1")
    mysql80.execute("UPDATE a SET v = 3", database=task.database)
    task.catch_up("--remove-meta")
    assert_silver_equals_source(spark, task)
    mysql80.execute("UPDATE b SET v = 4", database=task.database)
    task.catch_up()
    assert_silver_equals_source(spark, task)
    epochs = spark.table(lakehouse.bronze).where("op = 'update'").select("epoch").distinct().collect()
    assert [row.epoch for row in epochs] == [3]


def test_a_table_that_is_not_part_of_the_task_is_refused(mysql80, spark, tmp_path, capsys):
    """The request is refused at once, with the reason."""
    task = Task(tmp_path, mysql80, mysql80.fresh_database("adhoc"), mode="incremental")
    mysql80.execute("CREATE TABLE a (id INT PRIMARY KEY)", database=task.database)
    task.start_here()
    task.write_spec()
    with task.environment():
        for table, reason in (
            ("other.a", "is not selected"),
            ("a", "is not selected"),
            (f"{task.database}.b", "no server"),
        ):
            assert execute(["snapshot", str(task.spec), "--table", table]) == 2
            assert reason in capsys.readouterr().err
        assert execute(["snapshot", str(task.spec), "--table", f"{task.database}.a"]) == 2
        assert "has never run" in capsys.readouterr().err


def test_a_snapshot_that_was_planned_on_another_server_is_planned_again(mysql80, spark, tmp_path):
    """No chunk of it is read from the server that answers now."""
    task, lakehouse = loaded(tmp_path, mysql80, spark)
    plan = plan_snapshot(endpoint_of(mysql80), lambda schema, table: (schema, table) == (task.database, "a"))
    begin = Position(2, plan.begin.binlog_file, plan.begin.offset)
    store = ChunkStore(spark, lakehouse, task.name, task.source_id, "earlier")
    store.plan(PlannedSnapshot(-1, begin, plan.begin.gtid_set, plan.chunks, "another server"))
    task.catch_up()
    assert_silver_equals_source(spark, task)
    assert epochs_of(spark, task, "planned") == {1, -1, -2}
    assert epochs_of(spark, task, "landed") == {1, -2}


@pytest.mark.long
def test_a_snapshot_does_not_end_at_the_position_of_another_server(spark, tmp_path):
    """The address leads to another server while the relay keeps its connection: the tables are read again."""
    with (
        running("mysql80") as old,
        running("mysql80", server_id="2", log_slave_updates="ON") as new,
        Proxy(old) as proxy,
    ):
        follow(new, old)
        account = f"ALTER USER '{old.user}'@'%' IDENTIFIED BY '{old.password}'"
        new.execute("SET SESSION sql_log_bin = 0", account)
        task, _ = loaded(tmp_path, old, spark, port=proxy.port)
        promote(new, old)
        with task.environment():
            assert execute(["snapshot", str(task.spec), f"--table={task.database}.a"]) == 0
        task.arm(CrashPoint.SNAPSHOT_BETWEEN_BATCHES, "hang")
        with task.running():
            wait_until(task.hangs.exists, 60)
            proxy.upstream = new  # for new connections
            task.hangs.unlink()
            wait_until(lambda: epochs_of(spark, task, "ended") == {-1}, 60)
            proxy.upstream = old
            wait_until(lambda: epochs_of(spark, task, "ended") == {-1, -2}, 60)
        assert epochs_of(spark, task, "applied") == {-2}
        assert_silver_equals_source(spark, task)


def loaded(folder, server, spark, **settings):
    """A loaded task whose silver table `a` lacks a row, and its lakehouse."""
    task = Task(folder, server, server.fresh_database("adhoc"), mode="all", **settings)
    for table in ("a", "b", "c"):
        server.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)", database=task.database)
        server.execute(f"INSERT INTO {table} VALUES (1, 1), (2, 2)", database=task.database)
    task.catch_up()
    lakehouse = Lakehouse(root=str(task.root))
    spark.sql(f"DELETE FROM {lakehouse.silver(task.database, 'a')} WHERE id = 1")
    return task, lakehouse


def epochs_of(spark, task, kind):
    """The epochs of the snapshots for which dm_meta has rows of a kind."""
    place = Lakehouse(root=str(task.root)).metadata(f"{task.name}_snapshot")
    return {row.epoch for row in spark.table(place).where(f"kind = '{kind}'").collect()}
