"""Where a task starts: at a time, the recorded position, the spec's `meta`; and restarts on request."""

import json
import shutil
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from dmdelta.cli.main import execute
from dmdelta.errors import PositionLost, SourceError
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.source.relay.start_position import StartTime, find_in_archive, find_on_server
from tests.support.check import assert_silver_equals_source
from tests.support.relaying import endpoint_of, purged_to_the_newest
from tests.support.servers import Server, running
from tests.support.task import PASSWORD_VARIABLE, Task

SERVERS = ("mysql80", "mysql57", "mariadb")
TABLES = ("a", "b", "c")


def now() -> datetime:
    return datetime.now(timezone.utc)


def write_at_known_times(server: Server, database: str) -> list[tuple[datetime, tuple[str, int]]]:
    """Transactions in three files, more than a second apart: (a time right before one, its position)."""
    server.execute("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT)", database=database)
    known = []
    for _ in range(3):
        server.execute("FLUSH BINARY LOGS")
        for _ in range(2):
            time.sleep(1.1)
            known.append((now(), server.position()[:2]))
            server.execute("INSERT INTO t VALUES ()", database=database)
    time.sleep(1.1)
    return known


@pytest.mark.parametrize("name", SERVERS)
def test_a_start_time_is_found_on_a_server_and_in_its_archive(name, request, tmp_path):
    """The first transaction at or after the time; after the newest one, the end of the log; never the future."""
    server: Server = request.getfixturevalue(name)
    known = write_at_known_times(server, server.fresh_database("start"))
    endpoint = endpoint_of(server)
    for moment, place in known:
        assert find_on_server(endpoint, StartTime(moment)).begin == place
    assert find_on_server(endpoint, StartTime(now())).begin == server.position()[:2]
    with pytest.raises(SourceError, match="future"):
        find_on_server(endpoint, StartTime(now() + timedelta(hours=1)))

    server.execute("FLUSH BINARY LOGS")
    for file in server.binlog_files()[:-1]:
        shutil.copy(file, tmp_path)
    for moment, place in known:
        assert find_in_archive(tmp_path, StartTime(moment)).begin == place
    newest = max(tmp_path.iterdir())
    assert find_in_archive(tmp_path, StartTime(now())).begin == (newest.name, newest.stat().st_size)


def test_a_start_time_before_what_the_server_has_kept_is_lost():
    """Purged files may contain transactions of that time: they are not skipped."""
    with running("mysql80") as server:
        before = now()
        time.sleep(1.1)
        server.execute("FLUSH BINARY LOGS")
        assert purged_to_the_newest(server)
        with pytest.raises(PositionLost, match="starts at"):
            find_on_server(endpoint_of(server), StartTime(before))


@pytest.fixture
def task(mysql80: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Three tables, starting at the server's position."""
    made = Task(tmp_path, mysql80, mysql80.fresh_database("anew"), tables=TABLES)
    made.start_here()
    monkeypatch.setenv(PASSWORD_VARIABLE, mysql80.password)
    fill(made)
    return made


def fill(task: Task) -> None:
    """Create the tables, with three rows each."""
    for table in TABLES:
        task.server.execute(
            f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(20))",
            f"INSERT INTO {table} VALUES (1, 'first'), (2, 'goes'), (3, 'comes back')",
            database=task.database,
        )


def change(task: Task, word: str) -> None:
    """Rows are updated, deleted, moved to another key, and inserted again."""
    for table in TABLES:
        task.server.execute(
            f"UPDATE {table} SET v = '{word}' WHERE id = 1",
            f"DELETE FROM {table} WHERE id IN (2, 3)",
            f"INSERT INTO {table} VALUES (3, '{word}')",
            f"UPDATE {table} SET id = id + 100 WHERE id = 3",
            f"INSERT INTO {table} VALUES (2, '{word}'), (3, 'again')",
            database=task.database,
        )
        task.server.execute(f"DELETE FROM {table} WHERE id > 100", database=task.database)


CHANGES = len(TABLES) * 8
"""Row changes of one `change`."""


def bronze_epochs(spark, task: Task) -> dict[int, int]:
    """Row changes by epoch."""
    bronze = spark.table(Lakehouse(root=str(task.root)).bronze)
    counted = bronze.where("op IN ('insert', 'update', 'delete')").groupBy("epoch").count().collect()
    return {row["epoch"]: row["count"] for row in counted}


def test_a_task_restarts_at_meta_or_at_a_time(task, spark, capsys):
    """The log is read again in safe mode, in an epoch of its own: silver = source after each restart.

    `checkpoint reset` also forgets a silver table that was removed. The same start time restarts the task only once.
    """
    task.catch_up()
    first = bronze_epochs(spark, task)[1]
    change(task, "one")
    shutil.rmtree(task.root / "silver" / task.database / "b")
    capsys.readouterr()
    assert execute(["checkpoint", "reset", str(task.spec), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["begins"].startswith("2/")
    task.catch_up()
    assert_silver_equals_source(spark, task)
    landed = bronze_epochs(spark, task)
    assert landed == {1: first, 2: first + CHANGES}

    time.sleep(1.1)
    moment = now().isoformat()
    change(task, "two")
    task.catch_up("--start-time", moment)
    assert_silver_equals_source(spark, task)
    assert bronze_epochs(spark, task) == {**landed, 3: CHANGES}
    change(task, "three")
    task.catch_up("--start-time", moment)
    assert_silver_equals_source(spark, task)
    assert bronze_epochs(spark, task) == {**landed, 3: 2 * CHANGES}


@pytest.mark.long
def test_a_task_restarts_at_a_time_after_a_load_at_one_position(mysql80, tmp_path, monkeypatch, spark):
    """consistency: snapshot: the log after the load is applied in normal mode, and in safe mode when read again: rows
    that are only inserted would be appended.
    """
    settings = {"snapshot": {"consistency": "snapshot"}}
    task = Task(tmp_path, mysql80, mysql80.fresh_database("anew"), tables=TABLES, mode="all", settings=settings)
    monkeypatch.setenv(PASSWORD_VARIABLE, mysql80.password)
    fill(task)
    task.catch_up()
    change(task, "one")
    time.sleep(1.1)
    moment = now().isoformat()
    insert(task, 10)
    task.catch_up()
    assert_silver_equals_source(spark, task)
    insert(task, 11)
    task.catch_up("--start-time", moment)
    assert_silver_equals_source(spark, task)
    assert bronze_epochs(spark, task) == {2: CHANGES + len(TABLES), 3: 2 * len(TABLES)}


def insert(task: Task, key: int) -> None:
    """A row in each table."""
    statements = [f"INSERT INTO {table} VALUES ({key}, 'new')" for table in TABLES]
    task.server.execute(*statements, database=task.database)
