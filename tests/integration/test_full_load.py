"""Task-mode all: tables are loaded while they change, then the log is applied, so that silver equals the source."""

import json
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from dmdelta.cli.main import execute
from dmdelta.lakehouse.layout import Lakehouse
from tests.support.check import assert_silver_equals_source, assert_tables_equal_source
from tests.support.loadable import fill
from tests.support.meddler import Meddler
from tests.support.relaying import purged_to_the_newest, wait_until
from tests.support.servers import running
from tests.support.task import Task


class Load(NamedTuple):
    """What is loaded from which server; seed 0 leaves out the tables with all types."""

    server: str
    seed: int
    bronze: bool
    rows: int = 450_000

    def __str__(self):
        return f"{self.server}-{self.seed}{'' if self.bronze else '-past-bronze'}"


QUICK = Load("mysql80", 0, bronze=False, rows=70_000)
"""Fast enough for every test run: two chunks of `big`."""
LARGE = Load("mysql80", 5, bronze=True, rows=1_000_000)
WHOLE = [
    LARGE,
    *(Load(server, seed, bronze=seed % 2 == 1) for server in ("mysql80", "mysql57", "mariadb") for seed in (1, 2)),
]
"""Each server with both paths of the rows; 450,000 rows of `big` exceed the size of one commit."""


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("load", [QUICK, *(pytest.param(load, marks=pytest.mark.long) for load in WHOLE)], ids=str)
def test_a_database_that_changes_while_it_is_read_is_loaded_exactly(load, request, spark, tmp_path, capsys):
    """All types and kinds of keys, no key, no rows: silver equals the source after a catch-up; the next one is idle."""
    source, settings = request.getfixturevalue(load.server), {"snapshot": {"bronze": load.bronze}}
    task = Task(tmp_path, source, source.fresh_database("load"), mode="all", settings=settings)
    fill(source, task.database, load.rows, every_type=load.seed > 0)
    with Meddler(source, task.database, load.seed) as meddler:
        task.catch_up()
        assert meddler.rounds > 0, "nothing was changed meanwhile"
    task.catch_up()
    assert_silver_equals_source(spark, task)
    capsys.readouterr()
    task.catch_up()
    assert json.loads(capsys.readouterr().out.strip().splitlines()[-1])["idle"] is True
    recorded = chunks_of(spark, task)
    assert recorded["planned"] == recorded["landed"] > len(recorded["tables"]) >= 7
    reads = bronze_reads(spark, task)
    assert ("big" in reads) is load.bronze
    assert {"notes", "old_notes"} <= reads


def test_a_server_restored_from_a_dump_is_loaded(spark, tmp_path):
    """`gtid_purged` has transactions that no file of its log lists. The log continues after the load, and in the file
    behind purged ones after the relay folder was lost.
    """
    with running("mysql80") as server:
        server.execute("RESET MASTER", "SET GLOBAL gtid_purged = '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-100'")
        task = Task(tmp_path, server, server.fresh_database("load"), mode="all")
        server.execute("CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1), (2)", database=task.database)
        task.catch_up()
        server.execute("INSERT INTO a VALUES (3)", "FLUSH BINARY LOGS", database=task.database)
        task.catch_up()
        wait_until(lambda: purged_to_the_newest(server))
        shutil.rmtree(task.relay)
        server.execute("INSERT INTO a VALUES (4)", database=task.database)
        task.catch_up()
        assert_tables_equal_source(spark, task, ["a"])


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("server", ["mysql80", "mysql57", "mariadb"])
def test_readers_that_share_a_snapshot_read_one_position(server, request, spark, tmp_path):
    """consistency: snapshot, while tables change: all chunks have the same position, and the log resumes there."""
    source = request.getfixturevalue(server)
    settings = {"snapshot": {"consistency": "snapshot"}}
    task = Task(tmp_path, source, source.fresh_database("load"), mode="all", settings=settings)
    fill(source, task.database, 60_000, every_type=False)
    source.execute("ALTER TABLE old_notes ENGINE=InnoDB", database=task.database)
    with Meddler(source, task.database, 7):
        task.catch_up()
    task.catch_up()
    assert_silver_equals_source(spark, task)
    bronze = Lakehouse(root=str(task.root)).bronze
    told = spark.sql(f"SELECT DISTINCT ddl FROM {bronze} WHERE op = 'watermark'").collect()
    assert len(told) == 1
    assert json.loads(told[0].ddl)["exact"] is True


def test_a_table_without_snapshots_is_not_read_together(mysql80, spark, tmp_path, capsys):
    """Its engine has no snapshots: the load is refused, with the table's name, before anything is locked."""
    settings = {"snapshot": {"consistency": "snapshot"}}
    task = Task(tmp_path, mysql80, mysql80.fresh_database("load"), mode="full", settings=settings)
    mysql80.execute("CREATE TABLE old (id INT PRIMARY KEY) ENGINE=MyISAM", database=task.database)
    with task.environment():
        assert execute(["run", str(task.write_spec())]) == 2
    assert f"{task.database}.old: the storage engine has no snapshots" in capsys.readouterr().err


def chunks_of(spark, task: Task) -> dict:
    """What dm_meta records of the snapshot."""
    rows = spark.table(Lakehouse(root=str(task.root)).metadata(f"{task.name}_snapshot")).collect()
    planned = [(row.epoch, row.chunk) for row in rows if row.kind == "planned"]
    landed = [(row.epoch, row.chunk) for row in rows if row.kind == "landed"]
    assert sorted(landed) == sorted(set(landed))
    return {"planned": len(planned), "landed": len(landed), "tables": {row.cp_table for row in rows}}


def bronze_reads(spark, task: Task) -> set[str]:
    """The tables whose rows a snapshot has written to bronze."""
    bronze = Lakehouse(root=str(task.root)).bronze
    rows = spark.sql(f"SELECT DISTINCT table_name FROM {bronze} WHERE op = 'read'").collect()
    return {row.table_name for row in rows}


def test_full_ends_when_the_tables_are_loaded(mysql80, spark, tmp_path: Path):
    """Task-mode full ends by itself, without --until-caught-up; empty tables are empty in silver."""
    task = Task(tmp_path, mysql80, mysql80.fresh_database("load"), mode="full")
    for table in ("a", "b", "c"):
        mysql80.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)", database=task.database)
    mysql80.execute("INSERT INTO a VALUES (1, 1), (2, 2)", database=task.database)
    task.run()
    assert_silver_equals_source(spark, task)
