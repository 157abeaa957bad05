"""A shard is loaded with columns that another one gets later: that one's rows have their defaults in the target, too."""

import pytest

from dmdelta.lakehouse.layout import Lakehouse
from tests.support.sinking import union_differences
from tests.support.task import SinkTask

SHARD = "CREATE TABLE t (id INT PRIMARY KEY, v INT{})"
AHEAD = ", c INT DEFAULT 1, d VARCHAR(9) NOT NULL DEFAULT 'it''s'"
ALTER = "ALTER TABLE t ADD c INT DEFAULT 1, ADD d VARCHAR(9) NOT NULL DEFAULT 'it''s'"


def merging(kind, mode, servers, folder):
    """A task that merges the tables `t` of the databases of a prefix, and the prefix."""
    server, target = servers if kind == "mysql80" else servers[::-1]
    prefix = server.fresh_database("ahead")
    task = SinkTask(folder, server, f"{prefix}*", mode="all", target=target, sink={"metadata": f"dm_{prefix}"})
    to_one = {"schema-pattern": f"{prefix}_*", "table-pattern": "t", "target-schema": f"{prefix}m", "target-table": "t"}
    task.settings |= {"shard-mode": mode, "routes": {"shards": to_one}}
    return task, prefix


@pytest.fixture
def servers(mysql80, mariadb):
    return mysql80, mariadb


@pytest.mark.parametrize(
    ("kind", "mode", "first"),
    [
        ("mysql80", "pessimistic", "behind"),
        ("mariadb", "optimistic", "ahead"),
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
