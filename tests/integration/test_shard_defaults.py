"""A shard is loaded with columns that another one gets later: that one's rows have their defaults in the target, too."""

import pytest

from dmdelta.lakehouse.layout import Lakehouse
from tests.support.sinking import union_differences
from tests.support.task import SinkTask

SHARD = "CREATE TABLE t (id INT PRIMARY KEY, v INT{})"
AHEAD = ", c INT DEFAULT 1, d VARCHAR(9) NOT NULL DEFAULT 'it''s'"
ALTER = "ALTER TABLE t ADD c INT DEFAULT 1, ADD d VARCHAR(9) NOT NULL DEFAULT 'it''s'"


def merging(kind, mode, servers, folder):
    """A task that merges the tables `t` and `u` of the databases of a prefix, and the prefix."""
    server, target = servers if kind == "mysql80" else servers[::-1]
    prefix = server.fresh_database("ahead")
    task = SinkTask(folder, server, f"{prefix}*", mode="all", target=target, sink={"metadata": f"dm_{prefix}"})
    to_one = {"schema-pattern": f"{prefix}_*", "table-pattern": "[tu]", "target-schema": f"{prefix}m"}
    to_one["target-table"] = "t"
    task.settings |= {"shard-mode": mode, "routes": {"shards": to_one}}
    return task, prefix


@pytest.fixture
def servers(mysql80, mariadb):
    return mysql80, mariadb


@pytest.mark.parametrize(
    ("kind", "mode", "first"),
    [
        ("mysql80", "pessimistic", "behind"),
        pytest.param("mariadb", "optimistic", "ahead", marks=pytest.mark.long),
        pytest.param("mysql80", "pessimistic", "ahead", marks=pytest.mark.long),
        pytest.param("mariadb", "optimistic", "behind", marks=pytest.mark.long),
    ],
)
def test_a_shard_is_loaded_with_columns_that_another_gets_later(kind, mode, first, servers, spark, tmp_path):
    """Whichever is loaded first. Values of the shard that had the columns stay, NULL too; silver has the same rows."""
    task, prefix = merging(kind, mode, servers, tmp_path)
    names = {"ahead": (f"{prefix}_1", f"{prefix}_2"), "behind": (f"{prefix}_2", f"{prefix}_1")}[first]
    for name, columns in zip(names, (AHEAD, ""), strict=True):
        task.server.execute(f"CREATE DATABASE {name}")
        task.server.execute(SHARD.format(columns), database=name)
    ahead, behind = names
    task.server.execute("INSERT INTO t VALUES (1, 1, NULL, ''), (2, 2, 2, 'b')", database=ahead)
    task.server.execute("INSERT INTO t VALUES (11, 1), (12, 2)", database=behind)
    task.catch_up()
    task.server.execute("INSERT INTO t VALUES (13, 3)", "UPDATE t SET v = 5 WHERE id = 11", ALTER, database=behind)
    task.server.execute("INSERT INTO t VALUES (3, 1, NULL, '')", "UPDATE t SET c = NULL WHERE id = 2", database=ahead)
    task.server.execute(
        "INSERT INTO t VALUES (14, 4, NULL, 'd')", "UPDATE t SET c = NULL WHERE id = 12", database=behind
    )
    task.catch_up()
    shards = [(task.server, name, "t") for name in names]
    assert union_differences(shards, task.target, f"{prefix}m", "t") == []
    rows = [row for name in names for row in task.server.query("SELECT id, v, c, d FROM t", name)]
    silver = spark.table(Lakehouse(root=str(task.root)).silver(f"{prefix}m", "t")).select("id", "v", "c", "d")
    assert sorted(map(tuple, silver.collect()), key=repr) == sorted(rows, key=repr)


REQUIRED = ", c INT NOT NULL, d DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP"


def test_shards_lack_columns_that_others_require(mysql80, mariadb, tmp_path):
    """A column without a literal default allows NULL in a merged table, so that the rows of all shards fit: those of
    the full load, and those of a shard that joins later with further columns.
    """
    task, prefix = merging("mysql80", "optimistic", (mysql80, mariadb), tmp_path)
    task.tables, database = ("t",), f"{prefix}_1"
    mysql80.execute(f"CREATE DATABASE {database}", f"CREATE DATABASE {prefix}_2")
    mysql80.execute(SHARD.format(REQUIRED), "INSERT INTO t (id, v, c) VALUES (1, 1, 5)", database=database)
    mysql80.execute(SHARD.format(""), "INSERT INTO t VALUES (11, 1)", database=f"{prefix}_2")
    more = SHARD.format(", e INT NOT NULL").replace("TABLE t", "TABLE u")
    mysql80.execute(more, "INSERT INTO u VALUES (21, 1, 7)", database=database)
    task.catch_up()
    mysql80.execute("INSERT INTO t VALUES (12, 2)", database=f"{prefix}_2")
    task.tables = ("t", "u")
    task.catch_up()
    mysql80.execute("INSERT INTO u VALUES (22, 2, 8)", database=database)
    task.catch_up()
    rows = mariadb.query("SELECT id, v, c, e FROM t ORDER BY id", f"{prefix}m")
    assert list(rows) == [
        (1, 1, 5, None),
        (11, 1, None, None),
        (12, 2, None, None),
        (21, 1, None, 7),
        (22, 2, None, 8),
    ]
    (required,) = mysql80.query("SELECT d FROM t", database)
    assert mariadb.query("SELECT d FROM t WHERE id = 1", f"{prefix}m") == (required,)


def test_the_database_of_a_shard_is_dropped(mysql80, mariadb, tmp_path):
    """The target keeps the rows of all shards, and the remaining shard does not wait for the dropped one."""
    task, prefix = merging("mysql80", "pessimistic", (mysql80, mariadb), tmp_path)
    for number in (1, 2):
        mysql80.execute(f"CREATE DATABASE {prefix}_{number}")
        mysql80.execute(SHARD.format(""), f"INSERT INTO t VALUES ({number}, 0)", database=f"{prefix}_{number}")
    task.catch_up()
    mysql80.execute(f"DROP DATABASE {prefix}_1")
    mysql80.execute("ALTER TABLE t ADD c INT", "INSERT INTO t VALUES (3, 0, 4)", database=f"{prefix}_2")
    task.catch_up()
    assert list(mariadb.query("SELECT id, v, c FROM t ORDER BY id", f"{prefix}m")) == [
        (1, 0, None),
        (2, 0, None),
        (3, 0, 4),
    ]
