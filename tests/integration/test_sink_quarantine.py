"""`quality.sink`: the target has all rows, or the same rows as silver."""

import json

import pytest
import yaml

from dmdelta.cli.main import execute
from dmdelta.lakehouse.layout import Lakehouse
from tests.support.sinking import table_differences
from tests.support.task import SinkTask

PASSES = {
    "type": "expect_column_values_to_be_between",
    "kwargs": {"column": "n", "min_value": 0},
    "on-failure": "quarantine",
}
ROWS = "SELECT id, n FROM t ORDER BY id"


class Shop:
    """A task with a suite for its table `t`, and a sink."""

    def __init__(self, folder, server, target, policy, **sink):
        self.task = SinkTask(folder, server, server.fresh_database("kept"), mode="all", target=target, sink=sink)
        self.task.settings["quality"] = {"schemas": str(folder / "schemas"), "sink": policy}
        self.suite = folder / "schemas" / self.task.database / "t.yml"
        self.suite.parent.mkdir(parents=True)
        self.expect(0)
        self.do("CREATE TABLE t (id INT PRIMARY KEY, n INT, u INT UNIQUE)")

    def expect(self, least):
        expectation = PASSES | {"kwargs": {"column": "n", "min_value": least}}
        self.suite.write_text(yaml.safe_dump({"expectations": [expectation]}))

    def do(self, *statements):
        self.task.server.execute(*statements, database=self.task.database)

    @property
    def rows(self):
        return list(self.task.target.query(ROWS, database=self.task.database))

    def silver(self, spark):
        table = spark.table(Lakehouse(root=str(self.task.root)).silver(self.task.database, "t"))
        return [tuple(row) for row in table.select("id", "n").orderBy("id").collect()]

    def release(self, *arguments):
        with self.task.environment():
            return execute(["quality", "release", str(self.task.spec), *arguments, "--json"])


@pytest.mark.long
@pytest.mark.parametrize(
    "sink",
    [
        {},
        pytest.param({"multiple-rows": False, "compact": False}, marks=pytest.mark.long),
        pytest.param({"compact": False, "flush": "sync"}, marks=pytest.mark.long),
    ],
)
def test_the_target_has_the_rows_that_silver_has(mysql80, mariadb, spark, tmp_path, capsys, sink):
    """Through a load, every kind of change in one range and in several, key changes, and a release."""
    shop = Shop(tmp_path, mysql80, mariadb, "passing", **sink)
    shop.do("INSERT INTO t VALUES (1, 1, 1), (2, -2, 2), (3, 3, 3), (4, -4, 4), (5, -5, 5)")
    shop.task.catch_up()
    assert shop.rows == shop.silver(spark) == [(1, 1), (3, 3)]
    shop.do(
        "UPDATE t SET n = -1 WHERE id = 1",  # removed
        "UPDATE t SET n = 2 WHERE id = 2",  # added
        "UPDATE t SET n = -33 WHERE id = 3",  # removed and added again
        "UPDATE t SET n = 33 WHERE id = 3",
        "UPDATE t SET id = 40 WHERE id = 4",  # key change in quarantine, then added under another key
        "UPDATE t SET id = 41, n = 4 WHERE id = 40",
        "DELETE FROM t WHERE id = 5",
        "INSERT INTO t VALUES (6, -6, 6), (7, 7, 7), (8, 8, 8)",
        "UPDATE t SET id = 80, n = -8 WHERE id = 8",  # key change, removed
        "UPDATE t SET u = 100 WHERE id = 6",
        "DELETE FROM t WHERE id = 7",
    )
    shop.task.catch_up()
    assert shop.rows == shop.silver(spark) == [(2, 2), (3, 33), (41, 4)]
    capsys.readouterr()
    assert shop.release("--force") == 0
    assert json.loads(capsys.readouterr().out)[0]["released"] == 3
    assert shop.rows == shop.silver(spark) == [(1, -1), (2, 2), (3, 33), (6, -6), (41, 4), (80, -8)]
    assert table_differences(shop.task.server, shop.task.target, shop.task.database, "t") == []
    # Released rows are removed and deleted like others.
    shop.do(
        "UPDATE t SET u = 101 WHERE id = 6", "DELETE FROM t WHERE id = 80", "UPDATE t SET id = 10, n = 1 WHERE id = 1"
    )
    shop.task.catch_up()
    assert shop.rows == shop.silver(spark) == [(2, 2), (3, 33), (10, 1), (41, 4)]
    shop.expect(-6)
    assert shop.release() == 0
    assert shop.rows == shop.silver(spark) == [(2, 2), (3, 33), (6, -6), (10, 1), (41, 4)]


def test_by_default_the_target_has_every_row(mysql80, mariadb, spark, tmp_path):
    """The policy `all` is the default."""
    shop = Shop(tmp_path, mysql80, mariadb, "all")
    del shop.task.settings["quality"]["sink"]
    shop.do("INSERT INTO t VALUES (1, 1, 1), (2, -2, 2)")
    shop.task.catch_up()
    shop.do("UPDATE t SET n = -1 WHERE id = 1", "INSERT INTO t VALUES (3, -3, 3)")
    shop.task.catch_up()
    assert shop.silver(spark) == []
    assert shop.rows == [(1, -1), (2, -2), (3, -3)]


def test_a_release_waits_for_silver_and_the_sink(mysql80, mariadb, spark, tmp_path, capsys):
    """The sink's checkpoint is lost, as with new metadata: nothing is released; once the task has caught up, it is."""
    shop = Shop(tmp_path, mysql80, mariadb, "passing")
    shop.do("INSERT INTO t VALUES (1, -1, 1)")
    shop.task.catch_up()
    shop.task.target.execute(f"DELETE FROM dm_{shop.task.database}.t_sink_points")
    capsys.readouterr()
    assert shop.release("--force") == 6
    assert "does not have the same changes" in capsys.readouterr().err
    assert shop.rows == shop.silver(spark) == []
    shop.task.catch_up()
    assert shop.release("--force") == 0
    assert shop.rows == shop.silver(spark) == [(1, -1)]
