"""Names that look like SQL, paths, formats or options work as names everywhere, on both sides."""

import json

import pytest

from dmdelta.cli.main import execute
from dmdelta.lakehouse.layout import Lakehouse
from tests.support.diff import assert_same
from tests.support.sinking import table_differences
from tests.support.task import SinkTask
from tests.support.values import quoted

DATABASE = 'it\'s `a` "b" 100% ../x\\y — ü; DROP DATABASE mysql; --'
TABLES = (
    "../../etc/passwd",
    't\'; DROP TABLE `x`; -- a.b c,d{e}(f)=g\t"h"\nnew',
    "näme ☃ ${HOME} $1 \\1 %s {0}",
    "_" + "—" * 39,
)
COLUMNS = (
    "a.b",
    "back`tick",
    "quo'te",
    'dou"ble',
    "tab\tand\nline",
    "%s %(x)s {0} ${HOME}",
    "$.path[0]",
    "back\\slash\\",
    "☃ ,;{}()=",
    "select",
    "before",
    "op",
    "seq",
)
KEY = "i`d.'x'"
VALUES = ("'; DROP TABLE t; --", "\\", '"`${jndi:ldap://x}', "😀 %s {0}", "a\0b\nc", "' OR ''='", "")


@pytest.fixture
def task(mysql80, mariadb, tmp_path):
    """A task with a sink over a schema of such names."""
    name = f"{mysql80.fresh_database('names')}"
    mysql80.execute(f"DROP DATABASE {name}")
    database = f"{name[-6:]}{DATABASE}"[:64]
    made = SinkTask(tmp_path, mysql80, database, mode="all", target=mariadb, sink={"metadata": f"dm_{name}"})
    mysql80.execute(f"CREATE DATABASE {quoted(database)} CHARACTER SET utf8mb4")
    listed = ", ".join(f"{quoted(column)} VARCHAR(60)" for column in COLUMNS)
    for table in TABLES:
        key = f"{quoted(KEY)} VARCHAR(30) COLLATE utf8mb4_bin PRIMARY KEY"
        mysql80.execute(f"CREATE TABLE {quoted(table)} ({key}, n INT, {listed})", database=database)
        write(made, table, VALUES)
    return made


def write(task, table, keys):
    """A row for each key, whose other columns have such values, too."""
    rows = [
        (key, at, *(VALUES[(at + number) % len(VALUES)] for number in range(len(COLUMNS))))
        for at, key in enumerate(keys)
    ]
    names = ", ".join(quoted(name) for name in (KEY, "n", *COLUMNS))
    insert = f"INSERT INTO {quoted(table)} ({names})".replace("%", "%%")
    with task.server.connect(database=task.database) as connection, connection.cursor() as cursor:
        for row in rows:
            cursor.execute(f"{insert} VALUES %s", (row,))
        connection.commit()


def assert_everywhere(task, spark, tables):
    lakehouse = Lakehouse(root=str(task.root))
    assert_same(task.server, task.database, tables, lambda table: spark.table(lakehouse.silver(task.database, table)))
    wrong = [line for table in tables for line in table_differences(task.server, task.target, task.database, table)]
    assert wrong == []


@pytest.mark.long
def test_strange_names(task, spark, capsys):
    """Loaded, followed, altered, renamed, validated and rebuilt, in silver and in the target of a sink."""
    task.catch_up()
    assert_everywhere(task, spark, TABLES)
    key, quote, select = map(quoted, (KEY, "quo'te", "select"))
    for table in TABLES:
        write(task, table, ["new ' one", "new \\ two"])
        name = quoted(table)
        task.server.execute(
            f"UPDATE {name} SET {quote} = 'x''\\\\' WHERE n < 3",
            f"UPDATE {name} SET {key} = '../''`' WHERE n = 3",
            f"DELETE FROM {name} WHERE n IN (2, 4)",
            f"ALTER TABLE {name} ADD COLUMN `new '\"``;--` INT DEFAULT 5, RENAME COLUMN {select} TO `from ``x``'`",
            f"UPDATE {name} SET n = 100 WHERE n = 5",
            database=task.database,
        )
    task.server.execute(
        f"RENAME TABLE {quoted(TABLES[1])} TO `re'named ``--\\`",
        f"CREATE TABLE `like 'x` LIKE {quoted(TABLES[2])}",
        database=task.database,
    )
    task.server.execute(f"INSERT INTO `like 'x` SELECT * FROM {quoted(TABLES[0])}", database=task.database)
    now = [str(row[0]) for row in task.server.query("SHOW TABLES", database=task.database)]
    assert len(now) == len(TABLES) + 1
    task.catch_up()
    assert_everywhere(task, spark, now)
    capsys.readouterr()
    with task.environment():
        assert execute(["validate", str(task.spec), "--json"]) == 0, capsys.readouterr().out[-3000:]
        compared = json.loads(capsys.readouterr().out)
        assert sorted(one["status"] for one in compared) == [
            "excluded",
            *["same"] * len(now),
        ]  # one was renamed
        assert execute(["replay", str(task.spec), f"--table={task.database}.{TABLES[0]}", "--rebuild", "--json"]) == 0
        (made,) = json.loads(capsys.readouterr().out)
        assert made["rows"] > 0
        assert execute(["status", str(task.spec)]) == 0
    assert_everywhere(task, spark, now)
    assert not list(task.folder.rglob("passwd*"))
