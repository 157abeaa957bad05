"""`dmdelta replay` and `quality --replay` of merged tables: they affect the rows of one shard only."""

import json
from collections import Counter

import pytest
import yaml

from dmdelta.cli.main import execute
from dmdelta.lakehouse.layout import Lakehouse
from tests.support.task import Task

ROUTES = {
    "orders": {
        "schema-pattern": "replay*",
        "table-pattern": "orders_?",
        "target-schema": "shop",
        "target-table": "orders",
    }
}
AMOUNT = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "amount", "min_value": 0}}


class Merged:
    """A task whose shards are merged in optimistic mode, with a column that one shard has alone."""

    def __init__(self, folder, server):
        self.task = Task(folder, server, server.fresh_database("replay"), mode="all")
        suite = folder / "schemas" / "shop" / "orders.yml"
        suite.parent.mkdir(parents=True)
        suite.write_text(yaml.safe_dump({"expectations": [AMOUNT]}))
        quality = {"schemas": str(folder / "schemas")}
        self.task.settings |= {"routes": ROUTES, "shard-mode": "optimistic", "quality": quality}
        self.place = Lakehouse(root=str(self.task.root)).silver("shop", "orders")
        self.places = []
        create = "CREATE TABLE orders_{} (id INT PRIMARY KEY, amount INT, v VARCHAR(10))"
        insert = "INSERT INTO orders_{} VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, NULL)"
        self.do(*(text.format(shard) for text in (create, insert) for shard in (1, 2)))
        self.do("UPDATE orders_1 SET amount = -5 WHERE id = 2", "DELETE FROM orders_2 WHERE id = 1")
        self.do(
            "ALTER TABLE orders_1 ADD COLUMN extra INT NOT NULL DEFAULT 7",
            "UPDATE orders_1 SET amount = 2 WHERE id = 2",
        )
        self.do("INSERT INTO orders_1 VALUES (4, 4, 'd', 44)", "INSERT INTO orders_2 VALUES (4, 40, 'z')")

    def do(self, *statements):
        self.task.server.execute(*statements, database=self.task.database)
        file, offset, _ = self.task.server.position()
        self.places.append(f"{file}:{offset}")
        self.task.catch_up()

    def command(self, capsys, *arguments, code=0):
        capsys.readouterr()
        with self.task.environment():
            ended = execute([arguments[0], str(self.task.spec), *arguments[1:], "--json"])
        out, err = capsys.readouterr()
        assert ended == code, (out + err)[-3000:]
        return json.loads(out)

    def contents(self, spark):
        """All of the merged table, including silver's own columns."""
        return Counter(map(str, spark.table(self.place).collect()))


@pytest.fixture(scope="module", params=["mysql80", pytest.param("mariadb", marks=pytest.mark.long)])
def merged(request, tmp_path_factory):
    return Merged(tmp_path_factory.mktemp("merged"), request.getfixturevalue(request.param))


@pytest.mark.long
def test_a_shard_is_repaired_and_rebuilt(merged, spark, capsys):
    """Live, --rebuild by the merged table's name, and --into: the other shard's rows are unchanged."""
    task, before = merged.task, merged.contents(spark)
    assert len(before) == 7
    shard, places = f"--table={task.database}.orders_1", (f"--from={merged.places[0]}", f"--to={merged.places[3]}")
    own = "_dm_shard LIKE '%`orders_1`'"
    spark.sql(f"UPDATE {merged.place} SET extra = 0 WHERE {own} AND id = 4")
    spark.sql(f"UPDATE {merged.place} SET amount = -1 WHERE NOT {own} AND id = 4")
    (done,) = merged.command(capsys, "replay", shard, *places)
    assert (done["missing"], done["different"], done["extra"]) == (0, 1, 0)
    assert len(before - merged.contents(spark)) == 1  # the other shard's damage
    spark.sql(f"DELETE FROM {merged.place} WHERE id > 1")
    done = merged.command(capsys, "replay", "--table=shop.orders", "--rebuild", "--check")
    assert sorted(line["table"] for line in done) == [f"{task.database}.orders_{n}" for n in (1, 2)]
    assert merged.contents(spark) == before
    merged.command(capsys, "replay", shard, f"--to={merged.places[1]}", "--into=then.orders_1")
    then = spark.table(Lakehouse(root=str(task.root)).silver("then", "orders_1"))
    assert {(row.id, row.amount, row.v) for row in then.collect()} == {(1, 1, "a"), (2, -5, "b"), (3, 3, None)}
    assert "extra" not in then.columns
    merged.do("UPDATE orders_1 SET v = 'new' WHERE id = 1")
    assert len(merged.contents(spark) - before) == 1


@pytest.mark.long
def test_a_range_of_a_shard_is_evaluated(merged, spark, capsys):
    """The results from silver's history and from bronze are equal, for each shard separately."""
    places = f"--from={merged.places[0]}", f"--to={merged.places[1]}"
    parts = ("expectation", "success", "evaluated", "unexpected", "samples")
    found = [
        [[line[part] for part in parts] for line in merged.command(capsys, "quality", *places, *more, code=6)]
        for more in ((), ("--replay",))
    ]
    assert found[0] == found[1]
    (failing,) = [line for line in found[1] if not line[1]]
    assert failing[3] == 1
    assert failing[4][0]["id"] == 2
