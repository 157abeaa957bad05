"""`dmdelta replay` of renamed tables: live, into a new table, and to rebuild silver."""

import json
from collections import Counter

import pytest

from dmdelta.cli.main import execute
from dmdelta.lakehouse.layout import Lakehouse
from tests.support.check import assert_silver_equals_source
from tests.support.diff import silver_rows
from tests.support.task import Task
from tests.support.values import source_columns, source_rows

BEFORE = (
    "CREATE TABLE log (id INT PRIMARY KEY, v VARCHAR(20), n INT)",
    "CREATE TABLE quiet (id INT PRIMARY KEY, v VARCHAR(20))",
    "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(20))",
    "CREATE TABLE b (id INT PRIMARY KEY, w DECIMAL(8,2), k INT)",
    "CREATE TABLE bag (v VARCHAR(20), n INT)",
    "INSERT INTO log VALUES (1,'one',1),(2,'two',2),(3,'three',3)",
    "INSERT INTO quiet VALUES (1,'still'),(2,'here')",
    "INSERT INTO a VALUES (1,'a1'),(2,'a2')",
    "INSERT INTO b VALUES (1,1.5,1),(3,3.25,3)",
    "INSERT INTO bag VALUES ('x',1),('x',1),('y',2)",
)
CHANGES = (
    "UPDATE log SET v = 'uno' WHERE id = 1",
    "INSERT INTO log VALUES (4,'four',4),(5,'five',5)",
    "DELETE FROM log WHERE id = 2",
    "UPDATE a SET v = 'a2 again' WHERE id = 2",
    "DELETE FROM bag WHERE v = 'y'",
)
RENAMES = (
    "RENAME TABLE log TO audit",
    "CREATE TABLE log (id INT PRIMARY KEY, other DATE)",
    "INSERT INTO log VALUES (1,'2026-11-24'),(2,NULL)",
    "RENAME TABLE quiet TO silent",
    "RENAME TABLE a TO tmp, b TO a, tmp TO b",
    "RENAME TABLE bag TO sack",
)
LATER = (
    "ALTER TABLE audit ADD COLUMN extra INT NOT NULL DEFAULT 7, RENAME TO trail",
    "INSERT INTO trail VALUES (6,'six',6,60)",
    "UPDATE trail SET n = 99 WHERE id = 3",
    "DELETE FROM trail WHERE id = 4",
    "UPDATE a SET k = 33 WHERE id = 3",
    "INSERT INTO b VALUES (9,'b9')",
    "INSERT INTO sack VALUES ('z',3),('x',1)",
    "DELETE FROM log WHERE id = 2",
)
TABLES = ("trail", "log", "silent", "a", "b", "sack")
HELD = (
    *((0, "log"), (1, "log"), (2, "log"), (3, "log"), (2, "audit"), (3, "trail")),
    *((2, "a"), (2, "b"), (2, "silent"), (3, "sack")),
)
"""Names, and after which of the four groups of statements, whose tables are replayed."""


class Renamed:
    """A task whose tables are renamed; what the source held on the way, by position in its log.

    It is incremental: a task with snapshots reads a table again that was renamed while it did not run.
    """

    def __init__(self, folder, server):
        self.task = Task(folder, server, server.fresh_database("renamed"))
        self.task.start_here()
        self.lake = Lakehouse(root=str(folder / "lake"))
        self.records = []
        for statements in (BEFORE, CHANGES, RENAMES, LATER):
            server.execute(*statements, database=self.task.database)
            self.records.append(self.record())
            if statements in (BEFORE, RENAMES):
                self.task.catch_up()
        self.task.catch_up()

    def record(self):
        """The position, and the rows of each table there."""
        server, database = self.task.server, self.task.database
        file, offset, _ = server.position()
        found = {}
        for (table,) in server.query("SHOW TABLES", database=database):
            columns = source_columns(server, database, table)[0]
            names = [column.name for column in columns]
            found[table] = (names, Counter(source_rows(server, database, table, columns)))
        return f"{file}:{offset}", found

    def replay(self, capsys, table, *arguments, code=0):
        capsys.readouterr()
        with self.task.environment():
            ended = execute(
                ["replay", str(self.task.spec), f"--table={self.task.database}.{table}", *arguments, "--json"]
            )
        out, err = capsys.readouterr()
        assert ended == code, err[-3000:]
        return json.loads(out) if code == 0 else err

    def silver(self, spark, table):
        return spark.table(self.lake.silver(self.task.database, table))

    def contents(self, spark):
        """All of silver, including silver's own columns."""
        return {table: Counter(map(str, self.silver(spark, table).collect())) for table in TABLES}


@pytest.fixture(scope="module", params=["mysql80", "mariadb"])
def renamed(request, tmp_path_factory):
    return Renamed(tmp_path_factory.mktemp("renamed"), request.getfixturevalue(request.param))


@pytest.mark.long
def test_a_table_as_it_was_under_any_name(renamed, spark, capsys):
    """--into gives what the source held under a name at a position, whatever table the rows were in before."""
    for number, table in HELD:
        place, held = renamed.records[number]
        renamed.replay(capsys, table, f"--to={place}", f"--into=then.{table}_{number}")
        names, rows = held[table]
        frame = spark.table(renamed.lake.silver("then", f"{table}_{number}"))
        assert sorted(names) == sorted(name for name in frame.columns if not name.startswith("_dm_"))
        assert Counter(silver_rows(frame, names)) == rows != Counter()


@pytest.mark.long
@pytest.mark.parametrize(("pattern", "tables"), [("trail", ("trail",)), ("*", TABLES)])
def test_silver_is_rebuilt_from_all_names(renamed, spark, capsys, pattern, tables):
    """--rebuild restores every row and row version, also for a table without writes under its present name."""
    before = renamed.contents(spark)
    for table in {"trail", "silent", "sack"} & {*tables}:
        spark.sql(f"DELETE FROM {renamed.lake.silver(renamed.task.database, table)} WHERE v <> 'uno'")
    done = renamed.replay(capsys, pattern, "--rebuild")
    assert {f"{renamed.task.database}.{table}" for table in tables} == {line["table"] for line in done}
    assert renamed.contents(spark) == before
    assert_silver_equals_source(spark, renamed.task)


@pytest.mark.long
def test_damage_is_repaired_across_names(renamed, spark, capsys):
    """A range from before a RENAME repairs the table that the rows are in now: lost, changed and undeleted rows."""
    before, database = renamed.contents(spark), renamed.task.database
    trail, a = renamed.lake.silver(database, "trail"), renamed.lake.silver(database, "a")
    spark.sql(f"UPDATE {trail} SET n = -1 WHERE id = 3")
    spark.sql(f"INSERT INTO {trail} SELECT 2 AS id, * EXCEPT (id) FROM {trail} WHERE id = 1")
    spark.sql(f"DELETE FROM {trail} WHERE id = 5")
    spark.sql(f"DELETE FROM {a} WHERE id = 1")
    places = f"--from={renamed.records[0][0]}", f"--to={renamed.records[2][0]}"
    (done,) = renamed.replay(capsys, "trail", *places)
    assert (done["missing"], done["different"], done["extra"]) == (1, 1, 1), done
    (done,) = renamed.replay(capsys, "a", *places)
    assert (done["missing"], done["different"], done["extra"]) == (1, 0, 0)
    assert renamed.contents(spark) == before
    assert "has no key" in renamed.replay(capsys, "sack", *places, code=2)


@pytest.mark.long
def test_an_undamaged_range_is_not_written(renamed, spark, capsys):
    """Ranges across and after the statements find nothing to repair."""
    places = [place for place, _ in renamed.records]
    for begin, end in ((0, 3), (2, 3)):
        for table in ("trail", "log", "b"):
            (done,) = renamed.replay(capsys, table, f"--from={places[begin]}", f"--to={places[end]}")
            assert (done["missing"], done["different"], done["extra"]) == (0, 0, 0)
