"""The views of a running task in a catalog: read while it applies, and after it has ended."""

import random
import threading
import time

import pytest

from dmdelta.engine.live import views
from tests.integration.test_catalog import CATALOG, CatalogTask
from tests.support.background import in_background
from tests.support.diff import assert_same
from tests.support.servers import Server

ACCOUNTS, AMOUNT = 20, 1_000
NAMES = ("checking", "savings")
READS = 12


def transferring(server: Server, database: str):
    """Moves amounts between two tables in transactions; rows are deleted and inserted again, and keys change."""

    def work(stop: threading.Event) -> None:
        rng, number = random.Random(5), 0
        with server.connect(database=database, autocommit=False) as connection:
            cursor = connection.cursor()
            while not stop.is_set():
                number += 1
                amount, keys = rng.randrange(1, 50), [rng.randrange(ACCOUNTS) for _ in NAMES]
                for name, key, sign in zip(NAMES, keys, "-+", strict=True):
                    cursor.execute(f"UPDATE {name} SET amount = amount {sign} {amount} WHERE id % {ACCOUNTS} = {key}")
                if number % 5 == 0:
                    cursor.execute(f"UPDATE savings SET id = id + {ACCOUNTS} WHERE id = {keys[0]}")
                if number % 7 == 0:
                    cursor.execute(f"SELECT id, amount FROM checking WHERE id % {ACCOUNTS} = {keys[1]}")
                    row = cursor.fetchone()
                    cursor.execute("DELETE FROM checking WHERE id = %s", row[:1])
                    cursor.execute("INSERT INTO checking VALUES (%s, %s)", row)
                connection.commit()
                time.sleep(0.01)

    return work


@pytest.fixture
def task(mysql80, spark, tmp_path):
    database = mysql80.fresh_database("views")
    settings = {"live": {"landing-interval": "500ms", "views": True}}
    made = CatalogTask(tmp_path, mysql80, database, settings=settings, syncer={"target-freshness": "1s"})
    made.start_here()
    yield made
    for name in (database, f"b_{database}", f"m_{database}"):
        spark.sql(f"DROP SCHEMA IF EXISTS {CATALOG}.{name} CASCADE")


@pytest.mark.long
def test_views_are_right_while_the_task_applies(task, spark, monkeypatch):
    """Both tables of a query are at one position, so the total never changes; a table without a key has no view."""
    monkeypatch.setattr(views, "POLL_SECONDS", 0.5)
    monkeypatch.setattr(views, "IDLE_FACTOR", 0)
    server, database = task.server, task.database
    rows = ", ".join(f"({number}, {AMOUNT})" for number in range(ACCOUNTS))
    for name in NAMES:
        server.execute(
            f"CREATE TABLE {name} (id INT PRIMARY KEY, amount INT NOT NULL)",
            f"INSERT INTO {name} VALUES {rows}",
            database=database,
        )
    server.execute("CREATE TABLE bag (a INT)", "INSERT INTO bag VALUES (1)", database=database)
    task.catch_up()
    both = " UNION ALL ".join(f"SELECT amount FROM {CATALOG}.{database}.{name}_live" for name in NAMES)
    totals, texts = [], set()
    with task.running(), in_background(transferring(server, database)):
        while len(totals) < READS or len(texts) < 2:
            totals += [row[0] for row in spark.sql(f"SELECT sum(amount) FROM ({both})").collect()]
            texts.add(spark.sql(f"SHOW CREATE TABLE {CATALOG}.{database}.savings_live").collect()[0][0])
    assert set(totals) == {len(NAMES) * ACCOUNTS * AMOUNT}
    task.catch_up()
    assert_same(server, database, NAMES, lambda table: spark.table(f"{CATALOG}.{database}.{table}_live"))
    assert not spark.catalog.tableExists(f"{CATALOG}.{database}.bag_live")
