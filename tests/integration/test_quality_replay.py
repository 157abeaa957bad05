"""`quality --replay`: ranges are rebuilt from bronze, whatever history silver still has."""

import json
from pathlib import Path

import pytest
import yaml

from dmdelta.cli.main import execute
from dmdelta.lakehouse.layout import Lakehouse
from tests.support.forgetting import forget_history
from tests.support.task import Task

AMOUNT = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "amount", "min_value": 0}}
MEAN = {"type": "expect_column_mean_to_be_between", "kwargs": {"column": "amount", "max_value": 100}}


class Judged:
    """A task with a suite for some of its tables."""

    def __init__(self, folder: Path, server, suites, **settings):
        self.task = Task(folder, server, server.fresh_database("judged"), mode="all")
        for table, expectations in suites.items():
            suite = folder / "schemas" / self.task.database / f"{table}.yml"
            suite.parent.mkdir(parents=True, exist_ok=True)
            suite.write_text(yaml.safe_dump({"expectations": expectations}))
        self.task.settings |= {"quality": {"schemas": str(folder / "schemas")}, **settings}
        self.lake = Lakehouse(root=str(self.task.root))

    def do(self, *statements):
        """The position in the log behind them."""
        self.task.server.execute(*statements, database=self.task.database)
        file, offset, _ = self.task.server.position()
        return f"{file}:{offset}"

    def judge(self, capsys, *arguments, code=0):
        capsys.readouterr()
        with self.task.environment():
            ended = execute(["quality", str(self.task.spec), "--json", *arguments])
        out, err = capsys.readouterr()
        assert ended == code, (out + err)[-4000:]
        return json.loads(out) if out else err

    def lose_history(self, spark, table):
        """Remove the files of silver's old versions and their history."""
        place = self.silver(table)
        old = spark.sql(f"DESCRIBE HISTORY {place}").where("operation = 'MERGE' OR operation LIKE '%RITE%'").collect()
        spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        try:
            spark.sql(f"VACUUM {place} RETAIN 0 HOURS").collect()
        finally:
            spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
        forget_history(spark, self.task.root / "silver" / self.task.database / table)
        for version in {row.version for row in old}:
            with pytest.raises(Exception, match=r"(?i)version|not found|reconstruct"):
                spark.sql(f"SELECT * FROM {place} VERSION AS OF {version}").collect()

    def silver(self, table):
        return self.lake.silver(self.task.database, table)


def told(lines):
    """The findings without the values that depend on the time of day."""
    parts = ("table", "expectation", "on_failure", "success", "evaluated", "unexpected", "samples")
    return [[line[part] for part in parts] for line in lines if line["expectation"] != "freshness"]


@pytest.mark.long
def test_a_range_without_history_is_evaluated_from_bronze(mysql80, spark, tmp_path, capsys):
    """The results equal those from silver's history, which is removed: by VACUUM, and the log's old versions."""
    judged = Judged(tmp_path, mysql80, {"orders": [AMOUNT, MEAN]})
    task = judged.task
    begin = judged.do(
        "CREATE TABLE orders (id INT PRIMARY KEY, amount INT)",
        "CREATE TABLE items (id INT PRIMARY KEY, order_id INT, CONSTRAINT of_order FOREIGN KEY (order_id) REFERENCES orders (id) ON DELETE CASCADE)",
        "INSERT INTO orders VALUES (1, 1), (2, 2), (3, 3)",
        "INSERT INTO items VALUES (1, 1), (2, 3), (3, NULL)",
    )
    task.catch_up()
    end = judged.do(
        "UPDATE orders SET amount = -1 WHERE id = 2",
        "INSERT INTO orders VALUES (4, 400), (5, 5)",
        "DELETE FROM orders WHERE id = 3",  # the cascade is not in the log
        "INSERT INTO items VALUES (4, 4)",
    )
    task.catch_up()
    judged.do("UPDATE orders SET amount = 2 WHERE id = 2", "DELETE FROM orders WHERE id = 5", "DELETE FROM items")
    task.catch_up()
    places = f"--from={begin}", f"--to={end}"
    before = judged.judge(capsys, *places, code=6)
    assert {(line["expectation"].split("(")[0], line["unexpected"]) for line in before if not line["success"]} == {
        ("expect_column_values_to_be_between", 1),
        ("expect_column_mean_to_be_between", None),
        ("foreign key of_order", 1),  # the item whose order the range deleted
    }
    for table in ("orders", "items"):
        judged.lose_history(spark, table)
    assert "--replay" in judged.judge(capsys, *places, code=6)
    assert told(judged.judge(capsys, *places, "--replay", code=6)) == told(before)
    (image,) = [line for line in judged.judge(capsys, *places, "--replay", "--images", code=6) if line["unexpected"]]
    assert (image["samples"], image["evaluated"]) == ([{"id": 2}], 3)

    results = spark.table(judged.lake.metadata("t_quality")).where("scope = 'replay' AND NOT success").collect()
    assert {(row.begin_position, row.end_position) for row in results} == {(f"2/{begin}", f"2/{end}")}
    scratch = list((task.root / "dm_meta" / "replay").glob("*"))
    assert scratch
    assert all(spark.table(f"delta.`{path}`").isEmpty() for path in scratch)
