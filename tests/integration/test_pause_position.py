"""A pause under load ends with all tables and the sink at one position, or names the tables at another one."""

import random
import threading
import time
from contextlib import closing

import pytest

from dmdelta.config import load_spec
from dmdelta.engine.apply import writer
from dmdelta.engine.control.client import ask_task
from dmdelta.engine.control.protocol import ChangeState, ReadStatus
from dmdelta.engine.control.socket_client import ask_running
from dmdelta.engine.control.state import Request
from dmdelta.engine.run import runner
from dmdelta.lakehouse.layout import Lakehouse
from tests.support.background import in_background
from tests.support.task import SinkTask, Task

pytestmark = pytest.mark.long

TABLES, ROWS, BALANCE = 6, 5, 100
SECONDS = 180


def names(tables):
    return [f"account{number}" for number in range(tables)]


def transfers(task, tables):
    """A writer that moves amounts between tables: each transaction keeps the total."""

    def write(over):
        chosen = random.Random(7)
        with closing(task.server.connect(database=task.database)) as connection, connection.cursor() as cursor:
            while not over.wait(0.05):
                giver, taker = chosen.sample(names(tables), 2)
                row, amount = chosen.randrange(ROWS), chosen.randrange(1, 50)
                cursor.execute("BEGIN")
                cursor.execute(f"UPDATE {giver} SET balance = balance - {amount} WHERE id = {row}")
                cursor.execute(f"UPDATE {taker} SET balance = balance + {amount} WHERE id = {row}")
                cursor.execute("COMMIT")

    return in_background(write)


def silver_total(task, spark, tables):
    lakehouse = Lakehouse(root=str(task.root))
    found = [spark.table(lakehouse.silver(task.database, name)) for name in names(tables)]
    return sum(row.balance for table in found for row in table.collect())


def versions(task, spark, tables):
    lakehouse = Lakehouse(root=str(task.root))
    return [
        spark.sql(f"DESCRIBE HISTORY {lakehouse.silver(task.database, name)} LIMIT 1").collect()[0].version
        for name in names(tables)
    ]


def make_accounts(task, tables):
    task.start_here()
    rows = ", ".join(f"({row}, {BALANCE})" for row in range(ROWS))
    for name in names(tables):
        task.server.execute(
            f"CREATE TABLE {name} (id INT PRIMARY KEY, balance INT NOT NULL)",
            f"INSERT INTO {name} VALUES {rows}",
            database=task.database,
        )


def target_total(target, database, tables):
    connection = target.connect(database=database)
    with closing(connection), connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(f"SELECT SUM(balance) FROM {name}" for name in names(tables)))
        return sum(int(row[0]) for row in cursor.fetchall())


@pytest.mark.parametrize("tables", [TABLES, 20])
def test_all_tables_and_the_sink_end_at_one_position(mysql80, mariadb, spark, tmp_path, monkeypatch, tables):
    """Twice, through the socket and through dm_meta, while a writer transfers amounts between the tables."""
    monkeypatch.setattr(runner, "DRAIN_SECONDS", 120.0)  # this machine may be busy
    database = mysql80.fresh_database("accounts")
    task = SinkTask(tmp_path, mysql80, database, target=mariadb)
    mariadb.execute(f"DROP DATABASE IF EXISTS {database}", f"CREATE DATABASE {database}")
    make_accounts(task, tables)
    task.catch_up()
    total, before = tables * ROWS * BALANCE, versions(task, spark, tables)
    with task.running(), transfers(task, tables):
        spec = load_spec(task.spec)
        for ask in (note_of_socket, note_of_table):
            wait_for_new_versions(task, spark, before)
            assert ask(spec, Request.PAUSE) is None
            assert silver_total(task, spark, tables) == total
            assert target_total(mariadb, database, tables) == total
            before = versions(task, spark, tables)
            assert ask(spec, Request.RESUME) is None
    assert silver_total(task, spark, tables) == total


def note_of_socket(spec, request):
    return ask_running(spec, ChangeState(command=request)).result["note"]


def note_of_table(spec, request):
    return ask_task(spec, request).note


def wait_for_new_versions(task, spark, before):
    """The load is applied, so that the pause has something to interrupt."""
    deadline = time.monotonic() + SECONDS
    tables = len(before)
    while sum(now > then for now, then in zip(versions(task, spark, tables), before, strict=True)) < tables // 2:
        assert time.monotonic() < deadline, "nothing is applied"
        time.sleep(1)


def test_a_table_that_does_not_reach_the_position_is_named(mysql80, spark, tmp_path, monkeypatch):
    """The pause does not wait for it; the others are at the position, and after a resume it catches up."""
    task = Task(tmp_path, mysql80, mysql80.fresh_database("accounts"))
    make_accounts(task, TABLES)
    task.catch_up()
    apply_group, begun, free = writer.apply_group, threading.Event(), threading.Event()

    def held(session, tables, requests):
        if not free.is_set() and any(table.table == "account3" for table in tables):
            begun.set()
            session.range(0, 10**15, 1, 1).selectExpr("sum(hash(id))").collect()  # the other core is free
        return apply_group(session, tables, requests)

    monkeypatch.setattr(writer, "apply_group", held)
    monkeypatch.setattr(runner, "DRAIN_SECONDS", 20.0)
    with task.running():
        spec = load_spec(task.spec)
        # In one transaction, so that both land together.
        updates = (f"UPDATE account{number} SET balance = 0 WHERE id = 1" for number in (3, 4))
        task.server.execute("BEGIN", *updates, "COMMIT", database=task.database)
        assert begun.wait(SECONDS)
        note = note_of_socket(spec, Request.PAUSE)
        assert "account3" in note
        assert "account4" not in note
        assert ask_running(spec, ReadStatus()).result["error"] == note
        assert silver_total(task, spark, TABLES) == TABLES * ROWS * BALANCE - BALANCE
        free.set()
        assert note_of_socket(spec, Request.RESUME) is None
        deadline = time.monotonic() + SECONDS
        while silver_total(task, spark, TABLES) != TABLES * ROWS * BALANCE - 2 * BALANCE:
            assert time.monotonic() < deadline
            time.sleep(1)
