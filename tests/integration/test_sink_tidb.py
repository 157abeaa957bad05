"""The sink on TiDB: the tangled workload, kills, and differences between TiDB and MySQL."""

import pickle
import re
import signal

import pytest

from dmdelta.cli.main import execute
from dmdelta.errors import DmdeltaError, SchemaError, SinkError
from dmdelta.rules import BlockAllowList, SourceRules
from dmdelta.sink.plan.ddl import StatementContext, plan_statement
from dmdelta.sink.settings import SinkSettings
from dmdelta.sink.target.tables import Tables
from tests.integration.test_sink import KILLS, assert_same, recording, run_until, write
from tests.support import tangles
from tests.support.sinking import Sinking, table_differences, target_of
from tests.support.task import SinkTask

pytestmark = pytest.mark.tidb


MANY = [pytest.param((seed, workers), marks=pytest.mark.long) for seed in range(1, 6) for workers in (1, 4, 16)]


@pytest.mark.parametrize("how", [(1, 4), *MANY], ids=str)
def test_target_is_as_the_source(mysql80, tidb, spark, tmp_path, how):
    """For any seed and number of workers, with statements that TiDB cannot execute at once."""
    seed, workers = how
    compact = workers != 16
    database = write(mysql80, seed, 80)
    server = target_of(tidb)
    settings = SinkSettings(server, f"dm_{database}", workers, 10, compact, compact, flush_interval=1.0)
    sinking = Sinking(spark, tmp_path, mysql80, [database], settings)
    sinking.land()
    sinking.run()
    assert_same(mysql80, tidb, database)


@pytest.mark.parametrize("collation", ["utf8mb4_bin", "utf8mb4_0900_ai_ci", "utf8mb4_general_ci"])
def test_rows_without_a_key_that_are_equal_by_their_collation(mysql80, tidb, spark, tmp_path, collation):
    """Exactly the rows that the source changed or deleted are, whatever TiDB's collation takes for equal."""
    database = mysql80.fresh_database("equal")
    mysql80.execute(tangles.TABLES["bag"], database=database)
    tidb.execute(f"CREATE DATABASE {database}")
    tidb.execute(f"{tangles.TABLES['bag']} COLLATE {collation}", database=database)
    texts = ("x", "x ", "X", "x  ")
    rows = ", ".join(f"({number}, '{text}', NULL)" for number in range(8) for text in texts)
    mysql80.execute(
        f"INSERT INTO bag VALUES {rows}",
        "UPDATE bag SET b = 'y' WHERE b = BINARY 'x ' AND a < 4",
        "DELETE FROM bag WHERE b = BINARY 'X'",
        "UPDATE bag SET b = 'x ' WHERE b = BINARY 'x  ' AND a % 2",
        "DELETE FROM bag WHERE b = BINARY 'x ' AND a > 5 LIMIT 1",
        database=database,
    )
    settings = SinkSettings(target_of(tidb), f"dm_{database}", 1, batch=5, compact=False, flush_interval=1.0)
    sinking = Sinking(spark, tmp_path, mysql80, [database], settings)
    sinking.land()
    sinking.run()
    assert not table_differences(mysql80, tidb, database, "bag")


@pytest.mark.timeout(900)
def test_a_kill_at_each_point_repeats_nothing(mysql80, tidb, spark, tmp_path):
    """SIGKILL at each named point in turn, then a complete run: target = source, also rows without a key."""
    database = write(mysql80, 3, 120, statements=False)
    tidb.execute(f"CREATE DATABASE {database}")
    tidb.execute(*tangles.TABLES.values(), database=database)
    settings = SinkSettings(target_of(tidb), f"dm_{database}", 4, batch=5, compact=False, flush_interval=0.05)
    _, _, changes = recording(mysql80, spark, tmp_path, database, settings, every=15)
    file = tmp_path / "recorded"
    file.write_bytes(pickle.dumps(changes))
    for number, point in enumerate(KILLS):
        nth = 3 if "transaction" in point.value or "commit" in point.value or "record" in point.value else 1
        assert run_until(file, f"run-{number}", f"{point.value}:{nth}") == -signal.SIGKILL, point.value
    assert run_until(file, "last", "") == 0
    assert_same(mysql80, tidb, database)


def test_differences_of_tidb(mysql80, tidb, spark, tmp_path):
    """Statements that TiDB refuses unchanged, character sets that it lacks, XA transactions: target = source.

    A geometry stops the sink with the column's name; a LONGBLOB in the target takes the value as the source stores it.
    """
    database = mysql80.fresh_database("dialect")
    mysql80.execute(
        "CREATE TABLE kept (id INT PRIMARY KEY, v INT)",
        "INSERT INTO kept VALUES (1, 10), (2, 20), (3, 30)",
        "ALTER TABLE kept ADD x INT DEFAULT 7, ADD INDEX (x), ALGORITHM=INPLACE, LOCK=NONE",
        "ALTER TABLE kept ADD y INT, ALGORITHM=INSTANT",
        "UPDATE kept SET v = v + 1, y = id",
        "CREATE TABLE copied SELECT * FROM kept",
        "CREATE TABLE hidden (id INT PRIMARY KEY, v INT INVISIBLE, UNIQUE (v))",
        "INSERT INTO hidden (id, v) VALUES (1, 1), (2, 2)",
        "CREATE TABLE wide (id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET utf16, l VARCHAR(9) CHARACTER SET latin1 "
        "COLLATE latin1_swedish_ci, c VARCHAR(9) COLLATE utf8mb4_0900_as_cs, UNIQUE (c))",
        "INSERT INTO wide VALUES (1, '数据😀', 'Zoë€', 'a'), (2, 'x', 'y', 'a '), (3, NULL, NULL, 'A')",
        "CREATE TABLE computed (id INT PRIMARY KEY, at DATETIME DEFAULT (NOW() + INTERVAL 1 DAY), n INT DEFAULT (1 + 1))",
        "INSERT INTO computed (id) VALUES (1), (2)",
        "XA START 'x'",
        "INSERT INTO kept (id, v) VALUES (4, 40)",
        "XA END 'x'",
        "XA PREPARE 'x'",
        "XA COMMIT 'x'",
        "CREATE TABLE places (id INT PRIMARY KEY, p POINT)",
        "INSERT INTO places VALUES (1, POINT(1, 2)), (2, NULL)",
        database=database,
    )
    settings = SinkSettings(target_of(tidb), f"dm_{database}", workers=2, batch=10, flush_interval=1.0)
    sinking = Sinking(spark, tmp_path, mysql80, [database], settings)
    sinking.land()
    with pytest.raises(SinkError, match=r"no type for the column p \(geometry\)(.|\n)*LONGBLOB"):
        sinking.run()
    tidb.execute("CREATE TABLE places (id INT PRIMARY KEY, p LONGBLOB)", database=database)
    sinking.run()
    for table in ("kept", "copied", "hidden", "wide", "computed", "places"):
        assert mysql80.query(f"SELECT 1 FROM {table} LIMIT 1", database), table
        assert table_differences(mysql80, tidb, database, table) == []
    assert [row[2] for row in tidb.query("SHOW INDEX FROM kept", database)] == ["PRIMARY", "x"]


def test_an_operator_replaces_a_statement_that_tidb_refuses(mysql80, tidb, tmp_path, capsys):
    """The error names the position; after `binlog replace` there, the sink continues until target = source."""
    task = SinkTask(tmp_path, mysql80, mysql80.fresh_database("replaced"), target=tidb)
    task.start_here()
    mysql80.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(9))",
        "INSERT INTO t VALUES (1, 10, 'x')",
        "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a",
        "INSERT INTO t (id, a, b) VALUES (2, 'y', 20)",
        database=task.database,
    )
    with task.environment():
        assert execute(["run", str(task.write_spec()), "--until-caught-up"]) == SchemaError.exit_code
        place = re.search(r"position=(\d+/\S+?:\d+)", capsys.readouterr().err)
        assert place
        renamed = [f"--sql=ALTER TABLE t RENAME COLUMN {names}" for names in ("a TO x", "b TO a", "x TO b")]
        assert execute(["binlog", "replace", str(task.spec), f"--position={place[1]}", *renamed]) == 0
    task.catch_up()
    assert table_differences(mysql80, tidb, task.database, "t") == []
    assert tidb.query("SELECT a, b FROM t ORDER BY id", task.database) == (("x", 10), ("y", 20))


@pytest.mark.parametrize(
    ("statements", "why"),
    [
        (("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "ALTER TABLE t DROP PRIMARY KEY"), "clustered index"),
        (
            ("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "ALTER TABLE t ALTER COLUMN v SET INVISIBLE"),
            "error in your SQL syntax",
        ),
        (
            ("CREATE TABLE t (a INT, b INT)", "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a"),
            "cannot reuse the column name b",
        ),
        (
            ("CREATE TABLE t (a INT)", "CREATE TABLE T (a INT)", "ALTER TABLE T ADD b INT"),
            "treats the table .*T as its table",
        ),
        (("CREATE TABLE t (a INT)", "CREATE TABLE T (a INT)", "DROP TABLE T"), "treats the table .*T as its table"),
    ],
    ids=["clustered-key", "invisible", "exchanged-names", "case-altered", "case-dropped"],
)
def test_refused_statements(tidb, statements, why):
    """A statement that TiDB cannot execute stops the sink with the next step; the table is unchanged."""
    database = tidb.fresh_database("refused")
    context = StatementContext(
        SourceRules("s", BlockAllowList(do_dbs=(database,))), lambda _: (), lambda _: (), tidb=True
    )
    tables = Tables(target_of(tidb))

    def follow(sql):
        for one in plan_statement(sql, database, context):
            if one.within is not None:
                tables.make(one.sql, one.within, in_doubt=False)
            elif one.needs is None or tables.has(one.needs):
                tables.change(one.sql, in_doubt=False)

    for sql in statements[:-1]:
        follow(sql)
    before = tidb.query("SHOW CREATE TABLE t", database)
    with pytest.raises(DmdeltaError, match=rf"{why}(.|\n)*hint: .*(dmdelta binlog|route)"):
        follow(statements[-1])
    tables.close()
    assert tidb.query("SHOW CREATE TABLE t", database) == before
