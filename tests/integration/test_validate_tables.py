"""`dmdelta validate` lists every table of the task, with its result or why it is not compared, and finds all damage."""

import pytest

from dmdelta.ddl.types.silver_types import SHARD
from tests.integration.test_validate import validate
from tests.integration.test_validator import has_settled, progress, status, wait_until
from tests.support.task import SinkTask, Task

BEFORE = (
    "CREATE TABLE log (id INT PRIMARY KEY, v VARCHAR(20))",
    "CREATE TABLE idle (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE nothing (id INT PRIMARY KEY)",
    "CREATE TABLE keyless (v INT, w VARCHAR(9))",
    "CREATE TABLE shard_1 (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE shard_2 (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE filtered (id INT PRIMARY KEY, kind VARCHAR(9), v INT)",
    "CREATE TABLE undeleted (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE old_rows (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE gone (id INT PRIMARY KEY)",
    "INSERT INTO log VALUES (1, 'one'), (2, 'two')",
    "INSERT INTO idle VALUES (1, 10), (2, 20)",
    "INSERT INTO keyless VALUES (1, 'a'), (1, 'a'), (2, NULL)",
    "INSERT INTO shard_1 VALUES (1, 1), (2, 2)",
    "INSERT INTO shard_2 VALUES (1, 1), (2, 2)",
    "INSERT INTO filtered VALUES (1, 'test', 1), (2, 'live', 2)",
    "INSERT INTO undeleted VALUES (1, 1), (2, 2)",
    "INSERT INTO old_rows VALUES (1, 1)",
    "INSERT INTO gone VALUES (1)",
)
WHILE_IT_RUNS = (
    "RENAME TABLE log TO audit",
    "CREATE TABLE log (id INT PRIMARY KEY, w INT)",
    "INSERT INTO log VALUES (7, 7), (8, 8)",
    "DROP TABLE gone",
    "CREATE TABLE new_and_empty (id INT PRIMARY KEY)",
    "INSERT INTO filtered VALUES (3, 'test', 3), (4, 'live', 4), (5, 'test', 5), (6, 'live', 6)",
    "UPDATE filtered SET kind = 'live' WHERE id = 5",  # it appears in silver
    "UPDATE filtered SET kind = 'test', v = 60 WHERE id = 6",  # it is unchanged in silver
    "ALTER TABLE shard_2 ADD own VARCHAR(9), MODIFY v BIGINT",
    "UPDATE shard_2 SET v = 5000000000, own = 'x' WHERE id = 2",
    "UPDATE shard_1 SET v = 3 WHERE id = 2",
    "DELETE FROM shard_2 WHERE id = 1",
    "DELETE FROM keyless WHERE v = 2",
    "DELETE FROM undeleted WHERE id = 1",
    "INSERT INTO audit VALUES (3, 'last')",
)
FILTER = "kind = 'test'"
DAMAGE = {
    "audit": "UPDATE {silver}/audit` SET v = 'damaged' WHERE id = 1",
    "log": "DELETE FROM {silver}/log` WHERE id = 7",
    "idle": "UPDATE {silver}/idle` SET v = v + 1 WHERE id = 2",
    "keyless": "INSERT INTO {silver}/keyless` SELECT * FROM {silver}/keyless` LIMIT 1",
    "shard_1": "UPDATE {silver}/merged` SET own = 'y' WHERE id = 1 AND {shard} LIKE '%shard_1`'",
    "shard_2": "UPDATE {silver}/merged` SET v = v + 1 WHERE id = 2 AND {shard} LIKE '%shard_2`'",
    "filtered": "UPDATE {silver}/filtered` SET v = 50 WHERE id = 5",
}
"""By the table whose row is damaged."""
FOUND = {
    "audit": ("different", "1"),
    "log": ("missing", "7"),
    "idle": ("different", "2"),
    "keyless": ("extra", "1|1:a"),
    "shard_1": ("different", "1"),
    "shard_2": ("different", "2"),
    "filtered": ("different", "5"),
}
SAME = {*FOUND, "nothing"}


def settings(database):
    return {
        "routes": {
            "shards": {
                "schema-pattern": database,
                "table-pattern": "shard_*",
                "target-schema": database,
                "target-table": "merged",
            }
        },
        "shard-mode": "optimistic",
        "filters": {
            "kept": {"schema-pattern": database, "table-pattern": "undeleted", "events": ["delete"], "action": "Ignore"}
        },
        "expression-filter": {
            "inserts": {"schema": database, "table": "filtered", "insert-value-expr": FILTER},
            "updates": {"schema": database, "table": "filtered", "update-new-value-expr": FILTER},
            "by_old": {"schema": database, "table": "old_rows", "update-old-value-expr": "v > 5"},
        },
        "validator": {"mode": "full", "row-error-delay": "0s"},
    }


@pytest.fixture(params=["mysql80", "mariadb"])
def task(request, spark, tmp_path, monkeypatch):
    """A task that has followed all of it in one run after its full load."""
    server = request.getfixturevalue(request.param)
    database = server.fresh_database("tables")
    made = Task(tmp_path, server, database, mode="all", settings=settings(database))
    server.execute(*BEFORE, database=database)
    monkeypatch.setattr("dmdelta.engine.validation.validator.GATHER_SECONDS", 1.0)
    made.catch_up()
    with made.running():
        server.execute(*WHILE_IT_RUNS, database=database)
        file, offset, _ = server.position()
        wait_until(lambda: is_settled(progress(made, spark), file, offset), 120)
    return made


def is_settled(found, file, offset):
    told, pending = found
    is_of_the_log = told is not None and told.position is not None and told.position.binlog_file == file
    return is_of_the_log and has_settled(told, pending, file, offset)


@pytest.mark.long
def test_every_table_is_listed_and_damage_is_found_in_each(task, spark, capsys):
    """Renamed, new, idle, empty, dropped, keyless, merged and filtered tables have a line each."""
    found = validate(task, capsys, code=0)
    # Silver creates a table with its first row, or when the task finds it.
    assert found.pop("new_and_empty")["status"] in ("same", "excluded")
    assert {name for name, line in found.items() if line["status"] == "same"} == SAME
    assert {name for name, line in found.items() if line["status"] == "excluded"} == {"gone", "undeleted", "old_rows"}
    assert len(found) == len(SAME) + 3
    assert "dropped in the source" in found["gone"]["reason"]
    assert "ignores its events: delete" in found["undeleted"]["reason"]
    assert "update-old-value-expr" in found["old_rows"]["reason"]
    assert [found[name]["rows"] for name in ("audit", "log", "idle", "keyless", "nothing")] == [3, 2, 2, 2, 0]
    assert [found[name]["silver_rows"] for name in ("shard_1", "shard_2", "filtered")] == [2, 1, 3]
    assert found["filtered"]["rows"] == 3
    assert found["filtered"]["left_out_rows"] == 3

    told = {each["table"].split(".")[1]: each["status"] for each in status(task, capsys)["tables"]}
    assert told.pop("new_and_empty") != "validated"
    assert told == {
        **dict.fromkeys(("audit", "log", "shard_1", "shard_2", "filtered"), "validated"),
        **dict.fromkeys(("idle", "nothing"), "no changes"),
        **dict.fromkeys(("keyless", "undeleted", "old_rows"), "not validated"),
    }
    silver = f"delta.`{task.root}/silver/{task.database}"
    for statement in DAMAGE.values():
        spark.sql(statement.format(silver=silver, shard=SHARD))
    assert_found_and_repaired(task, capsys)


def assert_found_and_repaired(task, capsys):
    """`--fix` reports all of it and repairs all but the table without a key; a merged table's other rows stay."""
    found = validate(task, capsys, "--fix", code=6)
    assert {name for name, line in found.items() if line["status"] == "differs"} == set(FOUND)
    assert {name: rows_of(line) for name, line in found.items() if line["differences"]} == {
        name: [row] for name, row in FOUND.items()
    }
    assert found["shard_1"]["differences"][0]["values"] == {"own": ["~", "(a value)"]}
    assert {name for name, line in found.items() if line["fixed"]} == {*FOUND} - {"keyless"}
    assert "has no key" in found["keyless"]["reason"]
    found = validate(task, capsys, code=6)
    assert {name for name, line in found.items() if line["status"] == "differs"} == {"keyless"}


def rows_of(line):
    return [(row["kind"], row["key"]) for row in line["differences"]]


SUNK = (
    """CREATE TABLE kept (id INT PRIMARY KEY, name VARCHAR(20), d DECIMAL(9,2), f DOUBLE, at DATETIME(3), j JSON,
    b VARBINARY(9))""",
    "CREATE TABLE bag (v INT, w VARCHAR(9))",
    "CREATE TABLE undeleted (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE uninserted (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE nothing (id INT PRIMARY KEY)",
    "CREATE TABLE gone (id INT PRIMARY KEY)",
    """INSERT INTO kept VALUES (1, 'one', 1.5, 0.1, '2026-01-02 03:04:05.6', '{"a": [1.50, "x"]}', x'00ff'),
    (2, 'zwei', -2, -1e300, NULL, NULL, NULL), (3, 'trois', NULL, NULL, '2026-01-02', '[]', '')""",
    "INSERT INTO bag VALUES (1, 'a'), (1, 'a'), (2, NULL)",
    "INSERT INTO undeleted VALUES (1, 1), (2, 20), (3, 3)",
    "INSERT INTO uninserted VALUES (1, 1)",
    "DROP TABLE gone",
    "DELETE FROM undeleted WHERE id > 1",
)
SINK_DAMAGE = (
    "UPDATE kept SET d = 1.51 WHERE id = 1",
    "UPDATE kept SET j = '[0]' WHERE id = 3",
    "INSERT INTO bag VALUES (2, NULL)",
    "DELETE FROM undeleted WHERE id = 1",
)


@pytest.mark.parametrize(
    ("source", "target"), [("mysql80", "mariadb"), pytest.param("mariadb", "mysql80", marks=pytest.mark.long)]
)
def test_the_sinks_target_is_compared(source, target, request, spark, tmp_path, capsys):
    """The sink's rows do not differ; a damaged row of the target is found."""
    source, target = request.getfixturevalue(source), request.getfixturevalue(target)
    database = source.fresh_database("sunk")
    rules = {
        "deletes": {"schema": database, "table": "undeleted", "delete-value-expr": "v > 10"},
        "inserts": {"schema": database, "table": "uninserted", "insert-value-expr": "v > 10"},
    }
    task = SinkTask(tmp_path, source, database, settings={"expression-filter": rules}, target=target)
    source.execute("CREATE TABLE early (id INT)", "INSERT INTO early VALUES (1), (1)", database=database)
    task.start_here()
    source.execute(*SUNK, database=database)
    task.catch_up()
    (line,) = validate(task, capsys, f"--table={database}.early", code=6).values()
    assert (line["status"], line["missing"]) == ("differs", 2)
    assert "silver has no such table" in line["reason"]
    found = validate(task, capsys, "--against=sink", code=6)
    assert {name: line["status"] for name, line in found.items()} == {
        **dict.fromkeys(("kept", "bag", "undeleted", "nothing"), "same"),
        "uninserted": "excluded",
        "early": "differs",
    }
    assert (found["early"]["missing"], found["early"]["sink_rows"]) == (2, 0)
    assert [(found[name]["rows"], found[name]["sink_rows"]) for name in ("kept", "bag", "undeleted")] == [
        (3, 3),
        (3, 3),
        (1, 1),
    ]
    target.execute(*SINK_DAMAGE, database=database)
    found = validate(task, capsys, "--against=sink", code=6)
    assert {name: rows_of(line) for name, line in found.items() if line["status"] == "differs"} == {
        "kept": [("different", "1"), ("different", "3")],
        "bag": [("extra", "2|~")],
        "undeleted": [("missing", "1")],
        "early": [],
    }
    assert found["kept"]["differences"][0]["values"] == {"d": ["1.50", "1.51"]}
    target.execute("DROP TABLE kept", database=database)
    (line,) = validate(task, capsys, "--against=sink", f"--table={database}.kept", code=6).values()
    assert (line["missing"], line["reason"]) == (3, f"the target has no table {database}.kept")
