"""Ad-hoc snapshots, tables that join, and routes that extract columns: the target gets the same rows as silver."""

import json
import random
import signal
import threading
from itertools import count

import pytest

from dmdelta.cli.main import execute
from dmdelta.engine.snapshot.store import ChunkStore
from dmdelta.failpoint import CrashPoint
from tests.integration.test_validate import validate
from tests.support import tangles
from tests.support.check import assert_tables_equal_source
from tests.support.sinking import table_differences
from tests.support.task import SinkTask

TABLES = {
    "t": "id INT PRIMARY KEY, v INT",
    "pairs": "id INT PRIMARY KEY, name VARCHAR(20), UNIQUE (name)",
    "bag": "v INT, note VARCHAR(20)",
    "docs": "id INT PRIMARY KEY, j JSON",
}
ROWS = (
    "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)",
    "INSERT INTO pairs VALUES (1, 'a'), (2, 'b')",
    "INSERT INTO bag VALUES (1, 'x'), (1, 'x'), (2, 'y')",
    """INSERT INTO docs VALUES (1, JSON_OBJECT('at', CAST('2024-02-29 12:00:00' AS DATETIME), 'd', 1.10, 'f', 1.5e0)),
        (2, JSON_ARRAY(CAST('2024-02-29 12:00:00.5' AS DATETIME(3)), '2024-02-29 12:00:00', CAST('1:02' AS TIME))),
        (3, JSON_ARRAY(CAST('-99999999999999999999.0123456789' AS DECIMAL(40,10)), CAST('2024-02-29' AS DATE)))""",
)
_SAME_TEXT = "SELECT count(*) FROM docs a JOIN docs b ON b.id = a.id + 10 AND BINARY a.j = BINARY b.j"


def created(name):
    return f"CREATE TABLE {name} ({TABLES[name]})"


def assert_same(task, *tables):
    found = [line for table in tables for line in table_differences(task.server, task.target, task.database, table)]
    assert not found, found[:5]


def snapshot(task, *tables):
    with task.environment():
        assert execute(["snapshot", str(task.spec), *(f"--table={task.database}.{table}" for table in tables)]) == 0


@pytest.fixture
def task(mysql80, mariadb, tmp_path):
    made = SinkTask(tmp_path, mysql80, mysql80.fresh_database("adhoc"), mode="all", target=mariadb)
    mysql80.execute(*map(created, TABLES), *ROWS, database=made.database)
    return made


def test_tables_join_and_are_read_again(task, spark, capsys):
    """A joining table arrives; a damaged table with a key and one without are replaced; the log resumes on both."""
    task.tables = ("t", "bag")
    task.catch_up()
    assert_same(task, "t", "bag")
    task.target.execute(
        "DELETE FROM t WHERE id = 1",
        "INSERT INTO t VALUES (9, 9)",
        "INSERT INTO bag VALUES (1, 'x'), (7, 'z')",
        database=task.database,
    )
    # The row is in the target, so the log alone would stop the sink.
    task.server.execute("INSERT INTO t VALUES (9, 1)", "INSERT INTO bag VALUES (3, 'w')", database=task.database)
    task.tables = ()
    task.write_spec()
    snapshot(task, "t", "bag")
    task.catch_up()
    assert_same(task, *TABLES)
    changes = (
        "UPDATE t SET v = 5 WHERE id = 9",
        "DELETE FROM bag WHERE v = 1 LIMIT 1",
        "DELETE FROM pairs WHERE id = 2",
    )
    task.server.execute(*changes, database=task.database)
    task.catch_up()
    assert_same(task, *TABLES)
    capsys.readouterr()
    with task.environment():
        assert execute(["status", str(task.spec), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sources"][0]["sink_lacks"] == []
    found = validate(task, capsys, "--against=sink")
    assert {name: line["status"] for name, line in found.items()} == dict.fromkeys(TABLES, "same")


@pytest.mark.long
def test_a_task_that_loads_is_reset(task, spark):
    """--remove-meta of task-mode all: rows that the log lacks are replaced, without duplicates, by the log's values."""
    task.catch_up()
    task.server.execute(
        "DELETE FROM t WHERE id = 1",
        "INSERT INTO bag VALUES (4, 'v')",
        "UPDATE pairs SET name = 'c' WHERE id = 1",
        "ALTER TABLE pairs ADD n INT DEFAULT 7",
        "INSERT INTO pairs VALUES (3, 'a', 8)",
        database=task.database,
    )
    task.catch_up("--remove-meta")
    assert_same(task, *TABLES)
    # Documents that the snapshot has read, again from the log.
    logged = "INSERT INTO docs SELECT id + 10, j FROM docs"
    task.server.execute("UPDATE pairs SET n = 9", "INSERT INTO bag VALUES (4, 'v')", logged, database=task.database)
    task.catch_up()
    assert_same(task, *TABLES)
    assert task.target.query(_SAME_TEXT, task.database) == ((3,),)


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("RENAME TABLE pairs TO couples", "couples"),
        pytest.param("ALTER TABLE pairs CONVERT TO CHARACTER SET latin1", "pairs", marks=pytest.mark.long),
    ],
)
def test_a_table_is_renamed_or_changed_before_it_is_read(task, spark, monkeypatch, statement, name):
    """The snapshot is planned again; the rows of the table and of the others arrive, in silver and in the target."""
    task.catch_up()
    snapshot(task, "t", "pairs")
    plan, planned_before = ChunkStore.plan, []

    def then_change(store, planned, served):
        plan(store, planned, served)
        if not planned_before:
            task.server.execute("UPDATE pairs SET name = 'd' WHERE id = 1", statement, database=task.database)
            inserts = f"INSERT INTO {name} VALUES (3, 'ä')", "INSERT INTO t VALUES (4, 4)"
            task.server.execute(*inserts, database=task.database)
        planned_before.append(planned)

    monkeypatch.setattr(ChunkStore, "plan", then_change)
    task.catch_up()
    task.catch_up()
    assert len(planned_before) == 2
    assert_same(task, "t", name, "bag", "docs")
    assert_tables_equal_source(spark, task, ["t", name, "bag"])


@pytest.mark.long
def test_columns_that_a_route_extracts(task, spark):
    """Shards with the same keys: the sink creates the table with the extracted columns, also in its keys."""
    database = task.database
    rule = {"schema-pattern": database, "table-pattern": "shard_*", "target-schema": database, "target-table": "merged"}
    extracts = {"extract-table": {"table-regexp": "shard_(.*)", "target-column": "shard"}}
    task.settings["routes"] = {"shards": {**rule, **extracts}}
    task.tables = ("shard_*",)
    task.mode = "incremental"
    task.start_here()
    for shard in ("a", "b"):
        task.server.execute(
            f"CREATE TABLE shard_{shard} (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20), UNIQUE (name))",
            f"INSERT INTO shard_{shard} VALUES (1, 'one'), (2, '{shard}')",
            database=database,
        )
    task.catch_up()
    task.server.execute("DELETE FROM shard_b WHERE id = 1", "UPDATE shard_a SET id = 5 WHERE id = 2", database=database)
    task.catch_up()
    rows = task.target.query("SELECT id, name, shard FROM merged ORDER BY shard, id", database)
    assert rows == ((1, "one", "a"), (5, "a", "a"), (2, "b", "b"))


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_kill_during_a_reload_repeats_all_of_it(task, spark):
    """SIGKILL after the rows are deleted, and before the target records the reload: the next run has every row once."""
    task.catch_up()
    task.target.execute("DELETE FROM t", "INSERT INTO bag VALUES (1, 'x')", database=task.database)
    snapshot(task, *TABLES)
    task.server.execute("UPDATE t SET v = 7 WHERE id = 2", "INSERT INTO bag VALUES (5, 'u')", database=task.database)
    for point in (CrashPoint.SINK_RELOAD_EMPTIED, CrashPoint.SINK_RELOAD_EXECUTED):
        task.arm(point)
        with task.process("--until-caught-up") as process:
            assert process.wait(180) == -signal.SIGKILL
        task.server.execute("DELETE FROM bag WHERE v = 1 LIMIT 1", database=task.database)
    task.catch_up()
    assert_same(task, *TABLES)


RENAMES = 8
"""Per round. Each of them is a barrier for silver and the sink."""


class Work(threading.Thread):
    """Changes tangled rows in rounds of transactions, and a table that it may rename; in a thread of its own.

    A load does not read tables that are renamed meanwhile (docs/decisions/0003-full-load.md), and is planned while no
    structure changes.
    """

    def __init__(self, task, seed, *, renames):
        super().__init__(daemon=True)
        self.task, self.random, self.over, self.failure = task, random.Random(seed), threading.Event(), None
        self.renames = renames

    def run(self):
        try:
            with self.task.server.connect(database=self.task.database, autocommit=False) as connection:
                tangler = tangles.Tangler(connection, self.random.randrange(1 << 30), statements=False)
                for number in count():
                    tangler.work(5)
                    if self.renames and number % 6 == 0 and number < 6 * RENAMES:
                        self.move(connection, number // 6)
                    if self.over.wait(0.2):
                        return
        except Exception as error:  # noqa: BLE001 - raised again by the block
            self.failure = error

    def move(self, connection, number):
        here, there = ("moved", "moved_too") if number % 2 else ("moved_too", "moved")
        with connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO {there} (v) VALUES ({number})")
            cursor.execute(f"UPDATE {there} SET v = v + 1 ORDER BY id LIMIT 3")
            cursor.execute("INSERT INTO late (v) VALUES (1), (2)")
            connection.commit()
            cursor.execute(f"RENAME TABLE {there} TO {here}")

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()
        if self.failure is not None:
            raise self.failure
        # The next one finds the table under its first name.
        if self.task.server.query("SHOW TABLES LIKE 'moved_too'", self.task.database):
            self.task.server.execute("RENAME TABLE moved_too TO moved", database=self.task.database)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [1, 2])
def test_random_work_with_snapshots_joining_tables_and_renames(mysql80, mariadb, spark, tmp_path, capsys, seed):
    """The target equals the source after it; after damage, exactly the damaged rows differ."""
    task = SinkTask(tmp_path, mysql80, mysql80.fresh_database("adhoc"), mode="all", target=mariadb)
    counted = "(id INT AUTO_INCREMENT PRIMARY KEY, v INT)"
    mysql80.execute(
        *tangles.TABLES.values(),
        f"CREATE TABLE late {counted}",
        f"CREATE TABLE moved {counted}",
        "INSERT INTO plain VALUES (-1, 'kept', 1), (-2, 'kept', 1)",
        "INSERT INTO bag VALUES (1000, 'kept', NULL), (1000, 'kept', NULL)",
        database=task.database,
    )
    task.tables = (*tangles.TABLES, "moved*")
    for turn in range(3):
        with Work(task, seed * 10 + turn, renames=turn > 0):
            task.catch_up()
        chosen = random.Random(seed + turn).sample(sorted(tangles.TABLES), 3)
        snapshot(task, *chosen)
        task.tables = ()
        task.write_spec()
    task.catch_up()
    assert_same(task, *tangles.TABLES, "late", "moved")
    found = validate(task, capsys, "--against=sink")
    assert {name: line["status"] for name, line in found.items() if line["status"] != "same"} == {}
    task.target.execute(
        "DELETE FROM plain WHERE id = -1",
        "UPDATE plain SET n = 2 WHERE id = -2",
        "INSERT INTO late VALUES (-1, 0)",
        "DELETE FROM bag WHERE a = 1000 LIMIT 1",
        database=task.database,
    )
    found = validate(task, capsys, "--against=sink", code=6)
    rows = {name: [(row["kind"], row["key"]) for row in line["differences"]] for name, line in found.items()}
    assert {name: sorted(keys) for name, keys in rows.items() if keys} == {
        "plain": [("different", "-2"), ("missing", "-1")],
        "late": [("extra", "-1")],
        "bag": [("missing", "1000|4:kept|~")],
    }
