"""Servers that send no column names: each row has the column names of its position."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dmdelta.cli.main import execute
from dmdelta.errors import LakehouseError, SchemaError
from dmdelta.failpoint import CrashPoint
from dmdelta.lakehouse.layout import Lakehouse
from tests.support.diff import assert_same
from tests.support.servers import Server, running
from tests.support.task import Task

KINDS = {
    "mysql57": {},
    "mysql80": {"binlog_row_metadata": "MINIMAL"},
    "mariadb": {"binlog_row_metadata": "NO_LOG"},
}
WRITES = [
    ("INSERT INTO t VALUES (1, 'é', 10, 'ü', 'x', 'één')", ["id", "a", "b", "c", "e", "txt"]),
    ("ALTER TABLE t ADD m INT DEFAULT 7 AFTER id", None),
    ("INSERT INTO t VALUES (2, 5, 'b', 20, 'c', 'y', NULL)", ["id", "m", "a", "b", "c", "e", "txt"]),
    ("ALTER TABLE t DROP b, MODIFY a VARCHAR(40) NOT NULL", None),
    ("INSERT INTO t VALUES (3, 6, 'ß', 'c', 'y', 't')", ["id", "m", "a", "c", "e", "txt"]),
    ("ALTER TABLE t CHANGE a aa VARCHAR(40) NOT NULL, CHANGE c a VARCHAR(10) CHARACTER SET latin1", None),
    ("INSERT INTO t VALUES (4, 7, 'é', 'ç', 'x', 'ä')", ["id", "m", "aa", "a", "e", "txt"]),
    ("ALTER TABLE t CONVERT TO CHARACTER SET latin1, ADD w VARCHAR(3) FIRST", None),
    ("INSERT INTO t VALUES ('ß', 5, 8, 'å', 'ê', 'y', 'ø')", ["w", "id", "m", "aa", "a", "e", "txt"]),
    ("ALTER TABLE t CHANGE aa a VARCHAR(40) NOT NULL, CHANGE a aa VARCHAR(10)", None),
    ("UPDATE t SET a = 'ö' WHERE id = 5", ["w", "id", "m", "a", "aa", "e", "txt"]),
]
CREATE = (
    "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT, c VARCHAR(10) CHARACTER SET latin1, e ENUM('x','y'), "
    "txt TEXT)"
)


@pytest.fixture(
    scope="module", params=["mysql57", *(pytest.param(kind, marks=pytest.mark.long) for kind in ("mysql80", "mariadb"))]
)
def nameless(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server whose table maps have no column names."""
    with running(request.param, **KINDS[request.param]) as server:
        yield server


@pytest.fixture
def task(nameless: Server, tmp_path) -> Task:
    """A task over a database of its own, with a table older than the log that it reads."""
    database = nameless.fresh_database("tracked")
    nameless.execute(
        "CREATE TABLE old (id INT PRIMARY KEY, v VARCHAR(9))",
        "CREATE TABLE older (id INT PRIMARY KEY, v VARCHAR(9))",
        database=database,
    )
    task = Task(tmp_path, nameless, database)
    task.start_here()
    return task


def silver_of(task: Task, spark):
    return lambda table: spark.table(Lakehouse(root=str(task.root)).silver(task.database, table))


def names_in_bronze(task: Task, spark, table: str) -> list[list[str]]:
    """The columns of each row's after image, in the order of the log."""
    bronze = spark.table(Lakehouse(root=str(task.root)).bronze)
    rows = bronze.where(f"table_name = '{table}' AND op IN ('insert', 'update')").orderBy("epoch", "seq", "row")
    return [list(json.loads(row[0])) for row in rows.selectExpr("to_json(after)").collect()]


def history(task: Task, spark) -> list[tuple[str, str]]:
    """The recorded history of each table, in the order of the log."""
    rows = spark.table(Lakehouse(root=str(task.root)).metadata("t_schema_history")).orderBy("epoch", "seq")
    return [(row["table_name"], row["origin"]) for row in rows.collect() if row["table_name"]]


def test_all_structures_are_known_before_landing(task, spark):
    """Every row has the names of its position; tables older than the log have what information_schema proves."""
    server, database = task.server, task.database
    server.execute(CREATE, *(sql for sql, _ in WRITES), database=database)
    server.execute(
        "INSERT INTO old VALUES (1, 'é')",
        "ALTER TABLE older ADD n INT FIRST",
        "INSERT INTO older VALUES (2, 1, 'é')",
        database=database,
    )
    task.catch_up()
    assert_same(server, database, ["t", "old", "older"], silver_of(task, spark))
    expected = [sorted(names) for _, names in WRITES if names]
    assert [sorted(names) for names in names_in_bronze(task, spark, "t")] == expected
    written = history(task, spark)
    assert [origin for table, origin in written if table == "t"] == ["ddl"] * 6
    assert [origin for table, origin in written if table == "old"] == ["information_schema"]
    assert ("older", "information_schema") in written

    server.execute(
        "INSERT INTO t VALUES ('q', 6, 9, 'a', 'b', 'x', 't')",
        "ALTER TABLE t CHANGE a b VARCHAR(40), ADD x VARCHAR(5)",
        "INSERT INTO t VALUES ('q', 7, 9, 'a', 'û', 'x', 't', 'õ')",
        "CREATE TABLE u LIKE t",
        "INSERT INTO u SELECT * FROM t",
        "RENAME TABLE u TO v, old TO u, v TO old",
        "INSERT INTO u VALUES (3, 'u')",
        "DELETE FROM old WHERE id = 1",
        database=database,
    )
    task.catch_up()
    assert_same(server, database, ["t", "old", "u", "older"], silver_of(task, spark))
    count = len(history(task, spark))
    server.execute("INSERT INTO u VALUES (4, 'v')", database=database)
    task.catch_up()
    assert len(history(task, spark)) == count, "nothing changed, so nothing is written down"


@pytest.mark.long
def test_sequences_without_column_names_are_left_out(spark, tmp_path):
    """One that exists, one that is created and renamed, and one that no longer exists; their numbers do not land."""
    with running("mariadb", **KINDS["mariadb"]) as server:
        database = server.fresh_database("sequences")
        server.execute("CREATE SEQUENCE old", "CREATE TABLE t (id INT PRIMARY KEY)", database=database)
        task = Task(tmp_path, server, database)
        task.start_here()
        server.execute(
            "INSERT INTO t VALUES (NEXTVAL(old))",
            *("CREATE SEQUENCE gone", "INSERT INTO t VALUES (100 + NEXTVAL(gone))", "DROP SEQUENCE gone"),
            *(
                "CREATE SEQUENCE made",
                "SELECT NEXTVAL(made)",
                "RENAME TABLE made TO renamed",
                "SELECT NEXTVAL(renamed)",
            ),
            database=database,
        )
        task.catch_up()
        assert_same(server, database, ["t"], silver_of(task, spark))
        bronze = spark.table(Lakehouse(root=str(task.root)).bronze).where("op = 'insert'")
        assert {row["table_name"] for row in bronze.select("table_name").collect()} == {"t"}


@pytest.mark.long
def test_bronze_replaces_a_lost_history(task, spark):
    """The table of the history is dropped: the structures in bronze replace it."""
    server, database = task.server, task.database
    server.execute(CREATE, *(sql for sql, _ in WRITES[:6]), database=database)
    task.catch_up()
    spark.sql(f"DROP TABLE {Lakehouse(root=str(task.root)).metadata('t_schema_history')}")
    server.execute(*(sql for sql, _ in WRITES[6:]), database=database)
    task.catch_up()
    assert_same(server, database, ["t"], silver_of(task, spark))
    expected = [sorted(names) for _, names in WRITES if names]
    assert [sorted(names) for names in names_in_bronze(task, spark, "t")] == expected


def test_a_unique_index_that_is_the_key_is_replaced(mysql57, spark, tmp_path):
    """Statements do not show that it is the key, so information_schema is read again: silver has all rows."""
    database = mysql57.fresh_database("tracked")
    task = Task(tmp_path, mysql57, database)
    mysql57.execute(
        "CREATE TABLE older (a INT NOT NULL, b INT NOT NULL, v INT, UNIQUE KEY u (a), KEY i (v))", database=database
    )
    task.start_here()
    writes = [
        ["INSERT INTO older VALUES (1, 1, 1), (2, 2, 2)"],
        [
            "ALTER TABLE older DROP INDEX u, ADD UNIQUE u2 (a, b)",
            "INSERT INTO older VALUES (1, 2, 3)",
            "UPDATE older SET v = 9 WHERE a = 1 AND b = 1",
        ],
        ["ALTER TABLE older MODIFY b INT NULL", "INSERT INTO older VALUES (1, NULL, 4), (1, NULL, 5)"],
    ]
    for statements in writes:
        mysql57.execute(*statements, database=database)
        task.catch_up()
        assert_same(mysql57, database, ["older"], silver_of(task, spark))


OLDER = "CREATE TABLE older (id INT, v VARCHAR(9), PRIMARY KEY (id)) DEFAULT CHARSET=utf8mb4"


def command(task: Task, *arguments: str) -> int:
    with task.environment():
        return execute([arguments[0], arguments[1], str(task.write_spec()), *arguments[2:]])


def test_an_operator_adds_an_unknown_structure(mysql57, spark, tmp_path, capsys):
    """Rows before the first statement in the log need an operator who knows the table; a wrong entry is deleted."""
    database = mysql57.fresh_database("tracked")
    mysql57.execute("CREATE TABLE older (id INT PRIMARY KEY, v VARCHAR(9))", database=database)
    task = Task(tmp_path, mysql57, database)
    task.start_here()
    mysql57.execute(
        "INSERT INTO older VALUES (1, 'é')",
        "ALTER TABLE older ADD n INT FIRST, CHANGE v w VARCHAR(9)",
        "INSERT INTO older VALUES (2, 2, 'ö')",
        database=database,
    )
    name = f"--table={database}.older"
    with task.environment():
        assert execute(["run", str(task.write_spec()), "--until-caught-up"]) == SchemaError.exit_code
    said = " ".join(capsys.readouterr().err.split())
    assert f"no column names for {database}.older" in said
    assert "binlog_file=binlog." in said
    assert f"dmdelta binlog-schema update SPEC --table {database}.older" in said
    assert command(task, "binlog-schema", "update", name, f"--sql={OLDER}") == 0
    task.catch_up()
    assert_same(mysql57, database, ["older"], silver_of(task, spark))
    assert names_in_bronze(task, spark, "older") == [["id", "v"], ["id", "n", "w"]]

    assert command(task, "binlog-schema", "update", name, f"--sql={OLDER}") == 0
    mysql57.execute("INSERT INTO older VALUES (3, 3, 'ü')", database=database)
    with task.environment():
        assert execute(["run", str(task.write_spec()), "--until-caught-up"]) == SchemaError.exit_code
    capsys.readouterr()
    assert command(task, "binlog-schema", "list", name, "--json") == 0
    (shown,) = json.loads(capsys.readouterr().out)
    assert (shown["origin"], shown["columns"]) == ("update", ["id int", "v varchar utf8mb4"])
    assert command(task, "binlog-schema", "delete", name) == 0
    task.catch_up()
    assert_same(mysql57, database, ["older"], silver_of(task, spark))
    capsys.readouterr()
    assert command(task, "binlog-schema", "list", "--all", "--json") == 0
    shown = [entry["origin"] for entry in json.loads(capsys.readouterr().out) if entry["table"].endswith("older")]
    assert shown == ["update", "ddl", "update", "delete", "information_schema"]


@pytest.mark.long
def test_a_batch_that_did_not_land_leaves_nothing_behind(mysql57, spark, tmp_path):
    """The history is written first: entries of a failed batch are ignored and written again."""
    database = mysql57.fresh_database("tracked")
    task = Task(tmp_path, mysql57, database)
    task.start_here()
    mysql57.execute(CREATE, *(sql for sql, _ in WRITES[:4]), database=database)
    task.arm(CrashPoint.LAND_BEFORE_COMMIT, "error:LakehouseError")
    with task.environment():
        assert execute(["run", str(task.write_spec()), "--until-caught-up"]) == LakehouseError.exit_code
    assert not task.failpoint.exists()
    written = history(task, spark)
    assert [origin for _, origin in written] == ["ddl"] * 3
    mysql57.execute(*(sql for sql, _ in WRITES[4:]), database=database)
    task.catch_up()
    assert_same(mysql57, database, ["t"], silver_of(task, spark))
    assert [origin for _, origin in history(task, spark)] == ["ddl"] * 6


def test_column_names_in_the_log_take_precedence(mysql80, spark, tmp_path, capsys):
    """An ALTER is missing in the log: a warning has table and position, silver gets the column, nothing is tracked."""
    database = mysql80.fresh_database("told")
    task = Task(tmp_path, mysql80, database)
    task.start_here()
    mysql80.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT)", "INSERT INTO t VALUES (1, 1)", database=database)
    mysql80.execute("SET sql_log_bin = 0", "ALTER TABLE t ADD n INT FIRST", database=database)
    mysql80.execute("INSERT INTO t VALUES (2, 2, 2)", database=database)
    task.catch_up()
    assert_same(mysql80, database, ["t"], silver_of(task, spark))
    warnings = [
        line
        for line in capsys.readouterr().err.splitlines()
        if "structure in the log differs from the preceding" in line
    ]
    assert len(warnings) == 1
    assert f'"table": "{database}.t"' in warnings[0]
    assert '"at": "1/binlog.' in warnings[0]
    assert not Path(task.root, "dm_meta", "t_schema_history").exists()


@pytest.mark.long
def test_a_log_that_is_read_again_is_tracked_from_its_start(mysql57, spark, tmp_path):
    """Tracked structures later than the restart position do not count."""
    database = mysql57.fresh_database("tracked")
    task = Task(tmp_path, mysql57, database)
    task.start_here()
    mysql57.execute(CREATE, *(sql for sql, _ in WRITES[:5]), database=database)
    task.catch_up()
    task.catch_up("--remove-meta")
    assert_same(mysql57, database, ["t"], silver_of(task, spark))
    expected = [sorted(names) for _, names in WRITES[:5] if names]
    assert [sorted(names) for names in names_in_bronze(task, spark, "t")] == expected * 2


@pytest.mark.long
def test_a_full_load_provides_the_first_structures(mysql57, spark, tmp_path):
    """The structures of loaded tables are tracked further, statement by statement."""
    database = mysql57.fresh_database("tracked")
    mysql57.execute(CREATE, *(sql for sql, _ in WRITES[:4]), database=database)
    task = Task(tmp_path, mysql57, database, mode="all")
    task.catch_up()
    mysql57.execute(*(sql for sql, _ in WRITES[4:7]), database=database)
    task.catch_up()
    assert_same(mysql57, database, ["t"], silver_of(task, spark))
    names = [names for _, names in WRITES[4:7] if names]
    assert [sorted(names) for names in names_in_bronze(task, spark, "t")] == [sorted(found) for found in names]
