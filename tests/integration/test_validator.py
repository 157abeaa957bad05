"""`validator` in the spec: changed rows are compared with the source while the task runs."""

import json
import time

import pytest

from dmdelta.cli.main import execute
from dmdelta.engine.validation.store import VALIDATOR, read_progress
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.model.position import Position
from tests.support.check import assert_silver_equals_source
from tests.support.damage import damage, rows_to_damage
from tests.support.loadable import fill
from tests.support.task import Task
from tests.support.type_families import FAMILIES, SQL_MODE, TIME_ZONE, matrices
from tests.support.workload import Workload

AT_ONCE = {"mode": "full", "row-error-delay": "0s"}
PATIENT = {"mode": "full", "row-error-delay": "1h"}


def ask(task, capsys, *words, code=0):
    """The JSON of `dmdelta validate …`."""
    capsys.readouterr()
    with task.environment():
        ended = execute(["validate", words[0], str(task.write_spec()), *words[1:], "--json"])
    out, err = capsys.readouterr()
    assert ended == code, (out + err)[-4000:]
    return json.loads(out) if code == 0 else err


def status(task, capsys):
    """Of the one source."""
    (found,) = ask(task, capsys, "status")
    return found


def wait_until(holds, seconds=900):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.2)


def progress(task, spark):
    """From the newest flush: (progress, pending rows)."""
    found = read_progress(VALIDATOR.of(spark, Lakehouse(root=str(task.root)), task.name))
    return found.get(task.source_id, (None, 0))


@pytest.fixture
def quick(monkeypatch):
    """Ranges are gathered for a second."""
    monkeypatch.setattr("dmdelta.engine.validation.validator.GATHER_SECONDS", 1.0)


@pytest.fixture
def task(mysql80, tmp_path):
    database = mysql80.fresh_database("validator")
    merged = {"schema-pattern": database, "table-pattern": "m_*", "target-schema": database, "target-table": "m"}
    filtered = {"schema": database, "table": "f"}
    settings = {
        "validator": AT_ONCE,
        "routes": {"merged": merged},
        "shard-mode": "optimistic",
        "expression-filter": {
            "inserts": {**filtered, "insert-value-expr": "v > 100"},
            "updates": {**filtered, "update-new-value-expr": "v > 100"},
        },
    }
    made = Task(tmp_path, mysql80, database, settings=settings)
    made.start_here()
    mysql80.execute(
        "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(20), j JSON)",
        "CREATE TABLE b (x CHAR(9), y DECIMAL(6,2), v INT, PRIMARY KEY (x, y))",
        "CREATE TABLE keyless (v INT)",
        """INSERT INTO a VALUES (1, 'one', '{"a": 1.50}'), (2, 'two', NULL), (3, 'thrée', '[]'), (4, NULL, '{}')""",
        "INSERT INTO b VALUES ('it''s', 1, 1), ('ü|2', -2.5, 2), ('', 3, 3)",
        "INSERT INTO keyless VALUES (1)",
        "CREATE TABLE m_1 (id INT PRIMARY KEY, v INT)",
        "CREATE TABLE m_2 (id INT PRIMARY KEY, v INT, own INT)",
        "CREATE TABLE f (id INT PRIMARY KEY, v INT)",
        "CREATE TABLE idle (id INT PRIMARY KEY)",
        "INSERT INTO m_1 VALUES (1, 1)",
        "INSERT INTO m_2 VALUES (1, 1, 1), (2, 2, NULL)",
        "INSERT INTO f VALUES (1, 1), (2, 200)",
        database=made.database,
    )
    return made


@pytest.mark.long
def test_damage_is_found_where_rows_changed_and_errors_are_handled(task, spark, capsys):
    """Undamaged rows agree. Damaged ones are errors where the log changed them, until an operator handles them; those
    above the limit of pending rows are compared later.
    """
    task.catch_up()
    told = status(task, capsys)
    assert (told["validated_rows"], told["pending_rows"], told["new_errors"]) == (11, 0, 0)
    tables = {each["table"].split(".")[1]: (each["status"], each["rows"]) for each in told["tables"]}
    counts = {"a": 4, "b": 3, "m_1": 1, "m_2": 2, "f": 1}
    assert tables == {
        **{name: ("validated", rows) for name, rows in counts.items()},
        "idle": ("no changes", 0),
        "keyless": ("not validated", 0),
    }
    assert told["not_validated"] == [
        {"source_id": "s1", "table": f"{task.database}.keyless", "why": "the table has no key"}
    ]

    # Without the validator, so that the damage is there before it compares.
    task.settings["validator"] = {"mode": "none"}
    task.server.execute(
        "UPDATE a SET v = 'II' WHERE id = 2",
        "UPDATE a SET v = 'III' WHERE id = 3",
        "DELETE FROM a WHERE id = 4",
        "UPDATE b SET y = 5 WHERE v = 1",
        *("XA START 'x'", "UPDATE b SET v = 7 WHERE v = 3", "XA END 'x'", "XA PREPARE 'x'"),
        "UPDATE a SET v = 'IV' WHERE id = 3",
        "XA COMMIT 'x'",
        "UPDATE m_1 SET v = 2",
        "UPDATE m_2 SET v = 3 WHERE id = 1",
        "INSERT INTO f VALUES (3, 300), (4, 4)",
        "UPDATE f SET v = v - 295 WHERE id IN (1, 3)",
        "UPDATE f SET v = 400 WHERE id = 4",
        database=task.database,
    )
    task.catch_up()
    silver = Lakehouse(root=str(task.root))
    a, b = silver.silver(task.database, "a"), silver.silver(task.database, "b")
    spark.sql(f"UPDATE {a} SET v = 'ii' WHERE id = 2")
    spark.sql(f"""UPDATE {a} SET j = parse_json('{{"a": 1}}') WHERE id = 3""")
    spark.sql(f"INSERT INTO {a} SELECT 4 AS id, * EXCEPT (id) FROM {a} WHERE id = 1")
    spark.sql(f"DELETE FROM {b} WHERE v = 1")
    spark.sql(f"UPDATE {a} SET v = 'not touched' WHERE id = 1")
    spark.sql(f"UPDATE {silver.silver(task.database, 'm')} SET own = 9 WHERE v = 2 AND own IS NULL AND id = 1")
    spark.sql(f"UPDATE {silver.silver(task.database, 'f')} SET v = 6 WHERE id = 3")
    task.settings["validator"] = {**AT_ONCE, "max-pending-row-count": 2}
    task.catch_up()
    told = status(task, capsys)
    assert "more than 2 rows differ" in told["trouble"]
    assert (told["validated_rows"], told["pending_rows"], told["new_errors"]) == (11, 0, 0)
    task.settings["validator"] = AT_ONCE
    task.catch_up()

    found = {(row["table"], row["key"]): row for row in ask(task, capsys, "show-error")}
    assert {at: (row["kind"], row["state"]) for at, row in found.items()} == {
        ("a", "2"): ("different", "new"),
        ("a", "3"): ("different", "new"),
        ("a", "4"): ("extra", "new"),
        ("b", "4:it's|5.00"): ("missing", "new"),
        ("m_1", "1"): ("different", "new"),
        ("f", "3"): ("different", "new"),
    }
    assert found["a", "2"]["values"] == {"v": ["2:II", "2:ii"]}
    assert found["a", "3"]["values"] == {"j": ["[]", '{"a":1}']}
    assert found["b", "4:it's|5.00"]["values"]["v"] == ["1", None]
    assert found["m_1", "1"]["values"] == {"own": ["~", "(a value)"]}
    assert status(task, capsys)["validated_rows"] == 11 + 4
    ask(task, capsys, "clear-error", found["m_1", "1"]["error"], found["f", "3"]["error"])
    decided_about(task, capsys, {at: row["error"] for at, row in found.items()})

    capsys.readouterr()
    with task.environment():
        assert execute(["status", str(task.spec), "--json"]) == 0
    (source,) = json.loads(capsys.readouterr().out)["sources"]
    assert (source["validated_to"], source["validator_errors"]) == (source["landed_to"], 0)


def decided_about(task, capsys, errors):
    """The other commands: errors are ignored, resolved and removed; ignored ones stay so."""
    ask(task, capsys, "ignore-error", errors["a", "2"])
    ask(task, capsys, "resolve-error", "--all", f"--table={task.database}.b")
    ask(task, capsys, "resolve-error", errors["a", "3"])
    assert [row["key"] for row in ask(task, capsys, "show-error", "--state=new")] == ["4"]
    ask(task, capsys, "clear-error", errors["a", "4"])
    assert "there is no error" in ask(task, capsys, "clear-error", errors["a", "4"], code=2)
    told = status(task, capsys)
    assert (told["new_errors"], told["ignored_errors"], told["resolved_errors"]) == (0, 1, 2)


def test_rows_wait_for_the_next_run_and_settle(task, spark, capsys):
    """`fast` compares keys only. A row that differs is pending, across runs, until it agrees."""
    task.settings["validator"] = {"mode": "none"}
    task.catch_up()
    a = Lakehouse(root=str(task.root)).silver(task.database, "a")
    spark.sql(f"UPDATE {a} SET v = 'other' WHERE id = 1")
    spark.sql(f"DELETE FROM {a} WHERE id = 2")
    task.settings["validator"] = {**PATIENT, "mode": "fast"}
    task.server.execute("UPDATE a SET v = 'w' WHERE id > 2", database=task.database)
    task.catch_up()
    assert status(task, capsys)["validated_rows"] == 2, "it began with the first range that it was there for"

    task.settings["validator"] = {"mode": "none"}
    task.server.execute("UPDATE a SET j = '7' WHERE id IN (3, 4)", database=task.database)
    task.catch_up()
    spark.sql(f"UPDATE {a} SET v = 'other' WHERE id = 3")
    kept = Lakehouse(root=str(task.root)).silver("kept", "a")
    spark.sql(f"CREATE TABLE {kept} USING delta AS SELECT * FROM {a}")
    spark.sql(f"DELETE FROM {a} WHERE id = 4")
    task.settings["validator"] = {**PATIENT, "mode": "fast"}
    task.catch_up()
    told = status(task, capsys)
    assert (told["pending_rows"], told["new_errors"], told["mode"]) == (1, 0, "fast")
    spark.sql(f"INSERT INTO {a} SELECT * FROM {kept} WHERE id = 4")
    task.catch_up()
    told = status(task, capsys)
    assert (told["pending_rows"], told["new_errors"]) == (0, 0)


@pytest.mark.long
def test_a_blocked_validator_blocks_nothing_else(task, spark, capsys, quick):
    """While it cannot read a table, silver follows; it reports why it waits, and resumes without a restart."""
    task.settings["validator"] = PATIENT
    task.catch_up()
    a = Lakehouse(root=str(task.root)).silver(task.database, "a")
    with task.running(), task.server.connect(database=task.database) as connection, connection.cursor() as cursor:
        cursor.execute("LOCK TABLES a WRITE")
        cursor.execute("UPDATE a SET v = 'locked'")
        wait_until(lambda: kill_reader(task.server))
        wait_until(lambda: progress(task, spark)[0].trouble is not None)
        cursor.execute("UPDATE a SET v = 'still'")
        wait_until(lambda: spark.sql(f"SELECT * FROM {a} WHERE v = 'still'").count() == 4)
        cursor.execute("UNLOCK TABLES")
        wait_until(lambda: progress(task, spark)[0].trouble is None)
    task.catch_up()
    told = status(task, capsys)
    assert (told["pending_rows"], told["new_errors"], told["trouble"]) == (0, 0, None)
    assert told["validated_rows"] >= 11


def kill_reader(server):
    """Kill the validator's statement, if it waits for a lock; True if it did."""
    rows = server.query("SELECT id FROM information_schema.processlist WHERE state LIKE 'Waiting for table metadata%'")
    for row in rows:
        server.execute(f"KILL {row[0]}")
    return bool(rows)


def has_settled(told, pending, file, offset):
    """Everything up to a position of the log was compared, and agrees."""
    return told.position >= Position(told.position.epoch, file, offset) and not pending and not told.left


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("source", ["mysql80", "mariadb"])
def test_rows_under_load_settle(source, request, spark, tmp_path, capsys, quick):
    """The source is always ahead: rows are pending for a while, none becomes an error, and finally all agree."""
    server = request.getfixturevalue(source)
    impatient = {"mode": "full", "row-error-delay": "3s"}
    task = Task(tmp_path, server, server.fresh_database("validator"), settings={"validator": impatient})
    task.tables = ("customers", "orders", "products")
    task.start_here()
    with task.running():
        with Workload(server, task.database, per_second=4):
            wait_until(lambda: (told := progress(task, spark)[0]) is not None and told.validated > 50)
        file, offset, _ = server.position()
        wait_until(lambda: has_settled(*progress(task, spark), file, offset))
    told = status(task, capsys)
    assert (told["pending_rows"], told["new_errors"], told["not_validated"]) == (0, 0, [])
    assert_silver_equals_source(spark, task)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("source", "mode"), [("mysql80", "full"), ("mysql80", "fast"), ("mariadb", "full")])
def test_every_type_agrees_and_every_damage_is_found(source, mode, request, spark, tmp_path, capsys):
    """Rows of all types and kinds of keys agree when inserted and updated; of damaged ones exactly those do not."""
    server = request.getfixturevalue(source)
    checked = {"validator": {"mode": mode, "row-error-delay": "0s"}}
    task = Task(tmp_path, server, server.fresh_database("validator"), settings=dict(checked))
    task.start_here()
    fill(server, task.database, 3_000)
    task.catch_up()
    change_every_type(server, task.database)
    task.catch_up()
    assert ask(task, capsys, "show-error") == []
    told = status(task, capsys)
    assert {each["table"].split(".")[1] for each in told["not_validated"]} == {"notes", "old_notes"}
    assert told["validated_rows"] > 3_600

    task.settings["validator"] = {"mode": "none"}
    big = Lakehouse(root=str(task.root)).silver(task.database, "big")
    ids = rows_to_damage(spark, big)
    nobody = -ids["a row of nobody"]
    server.execute(
        f"UPDATE big SET k = k + 1 WHERE id <= {max(ids.values()) + 100}",
        f"INSERT INTO big (id, k) VALUES ({nobody}, 1)",
        f"DELETE FROM big WHERE id = {nobody}",
        database=task.database,
    )
    task.catch_up()
    wanted = damage(spark, big, ids)
    task.settings |= checked
    task.catch_up()
    found = {row["key"]: row["kind"] for row in ask(task, capsys, "show-error")}
    assert found == {key: kind for key, kind in wanted.items() if mode == "full" or kind != "different"}


def change_every_type(server, database):
    """Rows of all families of types are updated, and some deleted."""
    tables = matrices([family for family in FAMILIES if server.name in family.servers])
    statements = [statement for table in tables for statement in (*table.updates(), *table.deletes())]
    statements += [
        "UPDATE words SET n = -n",
        "UPDATE pairs SET a = CONCAT('b', v % 3) WHERE v > 7",
        "DELETE FROM states",
    ]
    session = server.connect(database=database, sql_mode=SQL_MODE, init_command=f"SET time_zone = '{TIME_ZONE}'")
    with session as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        connection.commit()


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_killed_run_resumes_where_it_was(mysql80, spark, tmp_path, capsys):
    """Nothing is skipped, and it causes no error."""
    impatient = {"mode": "full", "row-error-delay": "0s"}
    task = Task(tmp_path, mysql80, mysql80.fresh_database("validator"), settings={"validator": impatient})
    task.start_here()
    with Workload(mysql80, task.database, per_second=8) as work:
        for _ in range(2):
            with task.process() as process:
                process.wait_for("range applied", seconds=300, times=2)
                work.wait_for(work.transactions + 50)
                process.kill()
    task.catch_up()
    told = status(task, capsys)
    assert (told["pending_rows"], told["new_errors"]) == (0, 0)
    assert told["validated_rows"] > 100
