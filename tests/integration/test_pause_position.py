"""A pause under load ends with all tables and the sink at one position, or names the tables that are elsewhere."""

import random
import threading
import time
from contextlib import closing, contextmanager

from dmdelta.config import load_spec
from dmdelta.engine.apply import writer
from dmdelta.engine.control.client import ask_task
from dmdelta.engine.control.protocol import ChangeState, ReadStatus
from dmdelta.engine.control.socket_client import ask_running
from dmdelta.engine.control.state import Request
from dmdelta.engine.run import runner
from dmdelta.lakehouse.layout import Lakehouse
from tests.support.task import SinkTask, Task

TABLES, ROWS, BALANCE = 20, 5, 100
SECONDS = 180


def names():
    return [f"account{number}" for number in range(TABLES)]


@contextmanager
def transfers(task):
    """A writer that moves amounts between tables: each transaction keeps the total."""
    over, failures = threading.Event(), []

    def write():
        chosen = random.Random(7)
        try:
            connection = task.server.connect(database=task.database)
            cursor = connection.cursor()
            while not over.wait(0.05):
                giver, taker = chosen.sample(names(), 2)
                row, amount = chosen.randrange(ROWS), chosen.randrange(1, 50)
                cursor.execute("BEGIN")
                cursor.execute(f"UPDATE {giver} SET balance = balance - {amount} WHERE id = {row}")
                cursor.execute(f"UPDATE {taker} SET balance = balance + {amount} WHERE id = {row}")
                cursor.execute("COMMIT")
            connection.close()
        except BaseException as error:  # noqa: BLE001 - raised below
            failures.append(error)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert failures == []


def silver_total(task, spark):
    lakehouse = Lakehouse(root=str(task.root))
    tables = [spark.table(lakehouse.silver(task.database, name)) for name in names()]
    return sum(row.balance for table in tables for row in table.collect())


def versions(task, spark):
    lakehouse = Lakehouse(root=str(task.root))
    return [
        spark.sql(f"DESCRIBE HISTORY {lakehouse.silver(task.database, name)} LIMIT 1").collect()[0].version
        for name in names()
    ]


def make_accounts(task):
    task.start_here()
    rows = ", ".join(f"({row}, {BALANCE})" for row in range(ROWS))
    for name in names():
        task.server.execute(
            f"CREATE TABLE {name} (id INT PRIMARY KEY, balance INT NOT NULL)",
            f"INSERT INTO {name} VALUES {rows}",
            database=task.database,
        )


def target_total(target, database):
    connection = target.connect(database=database)
    with closing(connection), connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(f"SELECT SUM(balance) FROM {name}" for name in names()))
        return sum(int(row[0]) for row in cursor.fetchall())


def test_all_tables_and_the_sink_end_at_one_position(mysql80, mariadb, spark, tmp_path, monkeypatch):
    """Twice, through the socket and through dm_meta, while a writer transfers amounts between 20 tables."""
    monkeypatch.setattr(runner, "DRAIN_SECONDS", 120.0)  # this machine may be busy
    database = mysql80.fresh_database("accounts")
    task = SinkTask(tmp_path, mysql80, database, target=mariadb)
    mariadb.execute(f"DROP DATABASE IF EXISTS {database}", f"CREATE DATABASE {database}")
    make_accounts(task)
    task.catch_up()
    total, before = TABLES * ROWS * BALANCE, versions(task, spark)
    with task.running(), transfers(task):
        spec = load_spec(task.spec)
        for ask in (note_of_socket, note_of_table):
            wait_for_new_versions(task, spark, before)
            assert ask(spec, Request.PAUSE) is None
            assert silver_total(task, spark) == total
            assert target_total(mariadb, database) == total
            before = versions(task, spark)
            assert ask(spec, Request.RESUME) is None
    assert silver_total(task, spark) == total


def note_of_socket(spec, request):
    return ask_running(spec, ChangeState(command=request)).result["note"]


def note_of_table(spec, request):
    return ask_task(spec, request).note


def wait_for_new_versions(task, spark, before):
    """The load is applied: a pause ends something."""
    deadline = time.monotonic() + SECONDS
    while sum(now > then for now, then in zip(versions(task, spark), before, strict=True)) < TABLES // 2:
        assert time.monotonic() < deadline, "nothing is applied"
        time.sleep(1)


def test_a_table_that_does_not_arrive_is_named(mysql80, spark, tmp_path, monkeypatch):
    """The pause does not wait for it; the others are at the position, and after a resume it follows."""
    task = Task(tmp_path, mysql80, mysql80.fresh_database("accounts"))
    make_accounts(task)
    task.catch_up()
    apply_group, begun, free = writer.apply_group, threading.Event(), threading.Event()

    def held(session, tables, requests):
        if not free.is_set() and any(table.table == "account3" for table in tables):
            begun.set()
            session.range(10**15).selectExpr("sum(hash(id))").collect()
        return apply_group(session, tables, requests)

    monkeypatch.setattr(writer, "apply_group", held)
    monkeypatch.setattr(runner, "DRAIN_SECONDS", 30.0)
    with task.running():
        spec = load_spec(task.spec)
        task.server.execute(
            *(f"UPDATE account{number} SET balance = 0 WHERE id = 1" for number in (3, 4)), database=task.database
        )
        assert begun.wait(SECONDS)
        note = note_of_socket(spec, Request.PAUSE)
        assert "account3" in note
        assert "account4" not in note
        assert ask_running(spec, ReadStatus()).result["error"] == note
        assert silver_total(task, spark) == TABLES * ROWS * BALANCE - BALANCE
        free.set()
        assert note_of_socket(spec, Request.RESUME) is None
        deadline = time.monotonic() + SECONDS
        while silver_total(task, spark) != TABLES * ROWS * BALANCE - 2 * BALANCE:
            assert time.monotonic() < deadline
            time.sleep(1)
