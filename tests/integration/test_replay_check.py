"""`replay --check`: the result of a replay is checked before any of it is written."""

import json
from collections import Counter

import pytest
import yaml

from dmdelta.cli.main import execute
from dmdelta.lakehouse.layout import Lakehouse
from tests.support.task import Task

AMOUNT = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "amount", "min_value": 0}}
EMAIL = {
    "type": "expect_column_values_to_match_regex",
    "kwargs": {"column": "email", "regex": "^[^@]+@[^@]+$"},
    "on-failure": "quarantine",
}


class Checked:
    """A task whose rows were written before it had expectations."""

    def __init__(self, folder, server):
        self.task = Task(folder, server, server.fresh_database("checked"), mode="all")
        self.suite = folder / "schemas" / self.task.database / "orders.yml"
        self.suite.parent.mkdir(parents=True)
        self.lake = Lakehouse(root=str(self.task.root))
        self.begin = self.do("CREATE TABLE orders (id INT PRIMARY KEY, email VARCHAR(40))")
        self.task.catch_up()
        self.do(
            "INSERT INTO orders VALUES (1, 'a@b'), (2, 'broken'), (3, 'c@d')",
            "ALTER TABLE orders ADD COLUMN amount INT DEFAULT 1",
            "UPDATE orders SET amount = -3 WHERE id = 3",
        )
        self.end = self.do("UPDATE orders SET amount = 9 WHERE id = 2")
        self.task.catch_up()
        self.task.settings["quality"] = {"schemas": str(folder / "schemas")}
        self.task.write_spec()

    def do(self, *statements):
        self.task.server.execute(*statements, database=self.task.database)
        file, offset, _ = self.task.server.position()
        return f"{file}:{offset}"

    def expect(self, *expectations):
        self.suite.write_text(yaml.safe_dump({"expectations": list(expectations)}))

    def replay(self, capsys, *arguments, code=0):
        capsys.readouterr()
        with self.task.environment():
            ended = execute(
                ["replay", str(self.task.spec), f"--table={self.task.database}.orders", "--check", *arguments, "--json"]
            )
        out, err = capsys.readouterr()
        assert ended == code, err[-3000:]
        return json.loads(out)[0] if code == 0 else err

    @property
    def place(self):
        return self.lake.silver(self.task.database, "orders")

    def contents(self, spark):
        """Silver's rows and its version."""
        version = spark.sql(f"DESCRIBE HISTORY {self.place}").agg({"version": "max"}).head()[0]
        return Counter(map(str, spark.table(self.place).collect())), version

    def apart(self, spark):
        """Keys in quarantine."""
        place = self.lake.metadata(f"t_quarantine__{self.task.database}__orders")
        return [row.id for row in spark.sql(f"SELECT image:id::INT AS id FROM {place}").collect()]


def assert_refused(checked, spark, capsys, *arguments):
    """The failure is reported with its counts, and silver is unchanged."""
    before = checked.contents(spark)
    message = checked.replay(capsys, *arguments, code=6)
    assert f"the replay of {checked.task.database}.orders fails expect_column_values_to_be_between" in message
    assert "(stop): 1 rows of 3" in message
    assert checked.contents(spark) == before


def test_a_rebuild_that_fails_is_not_written(mysql80, spark, tmp_path, capsys):
    """A planted failure of `stop` leaves the live table as it was, and is stored with the results."""
    checked = Checked(tmp_path, mysql80)
    checked.expect({**AMOUNT, "on-failure": "stop"}, {**EMAIL, "on-failure": "warn"})
    spark.sql(f"DELETE FROM {checked.place} WHERE id = 1")
    assert_refused(checked, spark, capsys, "--rebuild")
    results = spark.table(checked.lake.metadata("t_quality")).where("NOT success")
    assert {(row.scope, row.on_failure, row.unexpected) for row in results.collect()} == {
        ("replay-check", "stop", 1),
        ("replay-check", "warn", 1),
    }


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_range_that_fails_is_not_written(mysql80, spark, tmp_path, capsys):
    """Neither silver nor the table of --into is written; rows that fail quarantine are quarantined, warnings reported."""
    checked = Checked(tmp_path, mysql80)
    places = f"--from={checked.begin}", f"--to={checked.end}"
    checked.expect({**AMOUNT, "on-failure": "stop"})
    spark.sql(f"DELETE FROM {checked.place} WHERE id = 1")
    assert_refused(checked, spark, capsys, *places)
    assert_refused(checked, spark, capsys, f"--to={checked.end}", "--into=then.orders")
    assert not (checked.task.root / "silver" / "then").exists()
    checked.expect(AMOUNT, EMAIL)
    done = checked.replay(capsys, *places)
    assert (done["missing"], done["different"], done["extra"]) == (1, 0, 0)
    assert sorted(line.split("(")[0] for line in done["failing"]) == [
        "expect_column_values_to_be_between",
        "expect_column_values_to_match_regex",
    ]
    assert {row.id for row in spark.table(checked.place).collect()} == {1, 2, 3}
    spark.sql(f"DELETE FROM {checked.place} WHERE id = 2")
    assert checked.replay(capsys, *places)["missing"] == 1
    assert {row.id for row in spark.table(checked.place).collect()} == {1, 3}
    assert checked.apart(spark) == [2]


@pytest.mark.long
def test_a_rebuild_quarantines_rows_as_a_running_task_does(mysql80, spark, tmp_path, capsys):
    """Silver has the rows that pass, the quarantine the others, and `quality release` can release them."""
    checked = Checked(tmp_path, mysql80)
    checked.expect(EMAIL)
    checked.replay(capsys, "--rebuild")
    assert {row.id for row in spark.table(checked.place).collect()} == {1, 3}
    assert checked.apart(spark) == [2]
    checked.expect({**EMAIL, "kwargs": {"column": "email", "regex": "."}})
    with checked.task.environment():
        assert execute(["quality", "release", str(checked.task.spec), "--json"]) == 0
    (sent,) = json.loads(capsys.readouterr().out)
    assert (sent["released"], sent["outdated"]) == (1, 0)
    assert {row.id for row in spark.table(checked.place).collect()} == {1, 2, 3}
