"""Logs with more than plain transactions, and the settings of a sink: the target equals the source."""

import re

import pytest

from dmdelta.cli.main import execute
from tests.support.check import assert_tables_equal_source
from tests.support.loadable import TABLES, fill
from tests.support.meddler import Meddler
from tests.support.online_ddl import GH_OST, GH_OST_TWO_STEP, PT_OSC, TABLE
from tests.support.sinking import table_differences
from tests.support.task import SinkTask


@pytest.fixture(params=["mysql80_too", pytest.param("tidb", marks=pytest.mark.tidb)])
def target(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def task(mysql80, target, tmp_path):
    made = SinkTask(tmp_path, mysql80, mysql80.fresh_database("sunk"), target=target)
    made.start_here()
    return made


def assert_same(task, *tables):
    """The tables equal the source's, have rows, and are the only ones."""
    assert sorted(name for (name,) in task.target.query("SHOW TABLES", task.database)) == sorted(tables)
    for table in tables:
        assert task.server.query(f"SELECT count(*) FROM {table}", task.database)[0][0]
        assert table_differences(task.server, task.target, task.database, table) == []


COMPRESSED = (
    "SET SESSION binlog_transaction_compression = ON",
    "BEGIN",
    "INSERT INTO t VALUES (30, 'between', 0), (31, 'changed', 0), (32, 'goes', 0)",
    "UPDATE t SET b = 31 WHERE id = 31",
    "DELETE FROM t WHERE id = 32",
    "COMMIT",
)
ONE_PHASE = (
    "XA START 'one'",
    "INSERT INTO t VALUES (40, 'one', 0), (41, 'one', 0)",
    "UPDATE t SET b = 41 WHERE id = 41",
    "XA END 'one'",
    "XA COMMIT 'one' ONE PHASE",
)


def test_xa_and_compressed_transactions(task, spark):
    """XA takes effect with its commit, in a later run and in the order of its events; never after a rollback. A
    compressed transaction is between.
    """
    task.server.execute(*TABLE, database=task.database)
    for name, key in (("kept", 10), ("gone", 20)):
        task.server.execute(
            f"XA START '{name}'",
            f"INSERT INTO t VALUES ({key}, '{name}', 0), ({key + 1}, '{name}', 0)",
            f"UPDATE t SET b = {key} WHERE id = {key}",
            f"UPDATE t SET b = {key + 1} WHERE id = {key + 1}",
            f"XA END '{name}'",
            f"XA PREPARE '{name}'",
            database=task.database,
        )
    task.server.execute(*ONE_PHASE, database=task.database)
    task.server.execute(*COMPRESSED, database=task.database)
    task.catch_up()
    assert_same(task, "t")  # prepared rows are not visible
    assert_tables_equal_source(spark, task, ["t"])
    task.server.execute("XA COMMIT 'kept'", "XA ROLLBACK 'gone'", database=task.database)
    task.catch_up()
    assert_same(task, "t")
    assert_tables_equal_source(spark, task, ["t"])
    values = task.target.query("SELECT b FROM t WHERE id >= 10 ORDER BY id", task.database)
    assert values == ((10,), (11,), (0,), (31,), (0,), (41,))


@pytest.mark.long
def test_renames_there_and_back(task, spark, capsys):
    """In one range, with rows under both names. A table of the target with the new name stops the sink."""
    there, back = "RENAME TABLE t TO moved", "RENAME TABLE moved TO t"
    task.server.execute(*TABLE, "CREATE TABLE other (id INT PRIMARY KEY)", database=task.database)
    for number in range(3):
        names = ("t", "moved", "t")
        rows = [f"INSERT INTO {name} VALUES ({10 * number + at + 10}, 'x', 0)" for at, name in enumerate(names)]
        between = [f"INSERT INTO other VALUES ({number})", f"INSERT INTO other VALUES ({number + 10})"]
        task.server.execute(rows[0], there, between[0], rows[1], between[1], back, rows[2], database=task.database)
    task.catch_up()
    assert_same(task, "t", "other")
    task.target.execute("CREATE TABLE moved (id INT PRIMARY KEY)", database=task.database)
    task.server.execute(there, "INSERT INTO moved VALUES (50, 'y', 0)", database=task.database)
    capsys.readouterr()
    with task.environment():
        assert execute(["run", str(task.write_spec()), "--until-caught-up"]) == 7
    assert "it has another table" in capsys.readouterr().err
    task.target.execute("DROP TABLE moved", database=task.database)
    task.catch_up()
    assert_same(task, "moved", "other")
    assert_tables_equal_source(spark, task, ["moved", "other"])


@pytest.mark.long
@pytest.mark.parametrize("sequence", [GH_OST, GH_OST_TWO_STEP, PT_OSC], ids=["gh-ost", "gh-ost-two-step", "pt-osc"])
def test_an_online_schema_change_alters_the_real_table(task, sequence):
    """The target gets the shadow's ALTER at the cut-over, and neither shadow nor trash table."""
    task.server.execute(*TABLE, database=task.database)
    task.server.execute(*sequence.strip().format(db=task.database).splitlines(), database=task.database)
    task.catch_up()
    assert_same(task, "t")
    listed = f"SELECT column_name, data_type, character_maximum_length FROM information_schema.columns WHERE table_schema = '{task.database}' ORDER BY 1"
    source, target = (server.query(listed) for server in (task.server, task.target))
    assert source == target


@pytest.mark.long
def test_an_operator_skips_what_the_target_refuses(task, capsys):
    """The error names row and position; after `binlog skip` there, the sink continues after it."""
    task.server.execute(*TABLE, database=task.database)
    task.catch_up()
    task.target.execute("INSERT INTO t VALUES (9, 'mine', 0)", database=task.database)
    task.server.execute(
        "INSERT INTO t VALUES (9, 'theirs', 1)", "UPDATE t SET b = 5 WHERE id = 1", database=task.database
    )
    capsys.readouterr()
    with task.environment():
        assert execute(["run", str(task.write_spec()), "--until-caught-up"]) == 7
        error = capsys.readouterr().err
        place = re.search(r"position=(\d+/\S+?:\d+)", error)
        assert place, error
        assert "dmdelta binlog skip" in error
        assert execute(["binlog", "skip", str(task.spec), f"--position={place[1]}"]) == 0
    task.catch_up()
    rows = task.target.query("SELECT id, a, b FROM t WHERE id IN (1, 9) ORDER BY id", task.database)
    assert rows == ((1, "x", 5), (9, "mine", 0))


@pytest.mark.long
def test_foreign_key_checks_are_satisfied(task):
    """Parents and children change alternately, over many workers: the target never refuses a row."""
    task.sink = {"foreign-key-checks": True, "worker-count": 8, "batch": 2}
    task.server.execute(
        "CREATE TABLE parent (id INT PRIMARY KEY, n INT)",
        "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id))",
        database=task.database,
    )
    for number in range(60):
        task.server.execute(
            f"INSERT INTO parent VALUES ({number}, 0)",
            f"INSERT INTO child VALUES ({number}, {number}), ({number + 1000}, {number})",
            f"UPDATE parent SET n = 1 WHERE id = {number}",
            f"DELETE FROM child WHERE id = {number}",
            *(
                [f"UPDATE child SET p = {number} WHERE p = {number - 1}", f"DELETE FROM parent WHERE id = {number - 1}"]
                if number % 3 == 1
                else []
            ),
            database=task.database,
        )
    task.catch_up()
    assert_same(task, "child", "parent")
    with pytest.raises(Exception, match="foreign key constraint"):
        task.target.execute("DELETE FROM parent WHERE id = 59", database=task.database)


@pytest.mark.long
def test_foreign_keys_to_what_keys_do_not_tell(task):
    """A parent whose unique texts are not ASCII, and one that is referenced by a part of its key: no row is refused."""
    task.sink = {"foreign-key-checks": True, "worker-count": 8, "batch": 2}
    task.server.execute(
        "CREATE TABLE named (id INT PRIMARY KEY, name VARCHAR(20) COLLATE utf8mb4_0900_ai_ci UNIQUE)",
        "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES named (id))",
        "CREATE TABLE pair (a INT, b INT, PRIMARY KEY (a, b))",
        "CREATE TABLE part (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES pair (a))",
        database=task.database,
    )
    for number in range(60):
        task.server.execute(
            f"INSERT INTO named VALUES ({number}, '{'e' if number < 20 else 'é'}{number}')",
            f"INSERT INTO child VALUES ({number}, {number})",
            f"INSERT INTO pair VALUES ({number}, 1)",
            f"INSERT INTO part VALUES ({number}, {number})",
            *([f"DELETE FROM part WHERE id = {number}", f"DELETE FROM pair WHERE a = {number}"] * (number % 3 == 1)),
            *([f"DELETE FROM child WHERE id = {number}", f"DELETE FROM named WHERE id = {number}"] * (number % 3 == 2)),
            database=task.database,
        )
    task.catch_up()
    assert_same(task, "child", "named", "pair", "part")


@pytest.mark.long
@pytest.mark.parametrize("target", ["mysql80_too"], indirect=True)
def test_the_target_is_reached_over_tls(task, capsys):
    """An account that requires TLS: it works with the server's CA; without it the error says what is missing."""
    task.server.execute(*TABLE, database=task.database)
    task.write_spec()
    task.target.execute("ALTER USER 'sink'@'%' REQUIRE SSL")
    try:
        with task.environment():
            assert execute(["run", str(task.spec), "--until-caught-up"]) == 7
        task.sink = {"security": {"ssl-ca": str(task.target.datadir / "ca.pem"), "ssl-verify-host": False}}
        task.catch_up()
    finally:
        task.target.execute("ALTER USER 'sink'@'%' REQUIRE NONE")
    assert_same(task, "t")


@pytest.mark.long
def test_a_full_load_reaches_the_target(mysql80, target, tmp_path):
    """Rows that were read, and empty tables, then the log."""
    task = SinkTask(tmp_path, mysql80, mysql80.fresh_database("sunk"), target=target, mode="all")
    tables = ("CREATE TABLE bag (n INT)", "CREATE TABLE hollow (id INT PRIMARY KEY, v VARCHAR(9))")
    mysql80.execute(*TABLE, *tables, "INSERT INTO bag VALUES (1), (1), (NULL)", database=task.database)
    task.catch_up()
    assert target.query("SELECT count(*) FROM hollow", task.database)[0][0] == 0
    mysql80.execute(
        "UPDATE t SET b = 11 WHERE id = 1",
        "DELETE FROM bag WHERE n = 1 LIMIT 1",
        "INSERT INTO hollow VALUES (1, 'a')",
        database=task.database,
    )
    task.catch_up()
    assert_same(task, "bag", "hollow", "t")


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("consistency", ["none", "snapshot"])
def test_a_full_load_of_changing_tables_reaches_the_target(mysql80, target, tmp_path, consistency):
    """Changes that the load may already contain do no harm; for a table without a key each change counts once."""
    task = SinkTask(tmp_path, mysql80, mysql80.fresh_database("sunk"), target=target, mode="all")
    task.settings["snapshot"] = {"consistency": consistency}
    fill(mysql80, task.database, 60_000, every_type=False)
    if consistency == "snapshot":
        mysql80.execute("ALTER TABLE old_notes ENGINE=InnoDB", database=task.database)  # MyISAM has no snapshots
    with Meddler(mysql80, task.database, 5):
        task.catch_up()
    task.catch_up()
    assert [line for table in TABLES for line in table_differences(mysql80, target, task.database, table)] == []


@pytest.mark.long
def test_a_full_load_where_foreign_keys_are_checked(mysql80, target, tmp_path):
    """Tables of the target with foreign keys: the load reads children before their parents, and no row is refused."""
    task = SinkTask(tmp_path, mysql80, mysql80.fresh_database("sunk"), target=target, mode="all")
    task.sink = {"foreign-key-checks": True, "batch": 2}
    target.execute(f"CREATE DATABASE {task.database}")
    for server in (mysql80, target):
        server.execute(
            "CREATE TABLE owner (id INT PRIMARY KEY, n INT)",
            "CREATE TABLE car (id INT PRIMARY KEY, o INT, FOREIGN KEY (o) REFERENCES owner (id) ON DELETE CASCADE)",
            "CREATE TABLE bag (o INT, FOREIGN KEY (o) REFERENCES owner (id))",
            database=task.database,
        )
    mysql80.execute(
        "INSERT INTO owner VALUES (1, 1), (2, 2), (3, 3)",
        "INSERT INTO car VALUES (10, 1), (20, 2), (30, 3), (31, 3)",
        "INSERT INTO bag VALUES (1), (1)",
        database=task.database,
    )
    task.catch_up()
    assert_same(task, "bag", "car", "owner")
    mysql80.execute(
        "DELETE FROM owner WHERE id = 3",
        "INSERT INTO car VALUES (30, 2)",
        "DELETE FROM bag WHERE o = 1 LIMIT 1",
        database=task.database,
    )
    task.catch_up()
    assert_same(task, "bag", "car", "owner")
