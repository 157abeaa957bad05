"""Bronze retention: changes expire after some days, once all readers have read them; commands that need them fail."""

import json
from datetime import datetime, timedelta, timezone
from unittest.mock import patch

import pytest

from dmdelta.bronze import landing
from dmdelta.cli.main import execute
from dmdelta.errors import QualityError
from dmdelta.lakehouse.layout import Lakehouse
from tests.support.clock import DaysAgo
from tests.support.task import Task

DAYS = 30


@pytest.mark.long
def test_old_changes_expire_and_silver_continues(mysql80, spark, tmp_path, capsys):
    """`maintain` removes them; replays and checks that need them fail; a table that is read again can be rebuilt."""
    task = Task(tmp_path, mysql80, mysql80.fresh_database("kept"))
    task.settings["maintenance"] = {"bronze-days": DAYS}
    task.start_here()
    table = f"{task.database}.t"
    lakehouse = Lakehouse(root=str(task.root))
    mysql80.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)", database=task.database)
    mysql80.execute("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)", database=task.database)
    with patch.object(landing, "datetime", DaysAgo):
        task.catch_up()
    begin = datetime.now(timezone.utc)
    old = spark.table(lakehouse.bronze).where("op = 'insert'")
    assert old.count() == 3
    mysql80.execute("UPDATE t SET v = 4 WHERE id = 1", "DELETE FROM t WHERE id = 2", database=task.database)
    task.catch_up()

    def command(*arguments, code=0):
        capsys.readouterr()
        with task.environment():
            ended = execute([*arguments])
        out, err = capsys.readouterr()
        assert ended == code, out + err
        return json.loads(out) if "--json" in arguments else err

    tables = command("maintain", str(task.spec), "--json")
    assert "expire" in next(one["done"] for one in tables if one["table"] == "bronze")
    bronze = spark.table(lakehouse.bronze)
    assert {row.op for row in bronze.collect()} >= {"ddl", "schema", "update", "delete"}
    assert bronze.where("op = 'insert'").isEmpty()
    (kept,) = spark.sql(
        f"SELECT min_by(concat(binlog_file, ':', binlog_pos), seq) AS at FROM {lakehouse.bronze} WHERE op = 'update'"
    ).collect()

    # Commands that need expired changes fail: they do not use the remaining ones alone.
    meta = "{binlog-name}:{binlog-pos}".format(**task.settings["meta"])
    replay = ("replay", str(task.spec), f"--table={table}")
    for arguments in (
        (*replay, f"--from={meta}", f"--to={kept.at}"),
        (*replay, f"--into={task.database}.then", f"--to={kept.at}"),
        (*replay, "--rebuild"),
        ("quality", str(task.spec), f"--from={meta}"),
        ("quality", str(task.spec), f"--from={(begin - timedelta(hours=1)).isoformat()}"),
    ):
        assert "have expired from bronze" in command(*arguments, code=QualityError.exit_code), arguments
    command("quality", str(task.spec), "--last=1", "--json")

    # The log continues, and a table that is read again can be rebuilt.
    mysql80.execute("INSERT INTO t VALUES (5, 5)", database=task.database)
    task.catch_up()
    assert rows_of(spark, lakehouse, task) == [(1, 4), (3, 3), (5, 5)]
    command("snapshot", str(task.spec), f"--table={table}")
    task.catch_up()
    (rebuilt,) = command(*replay, "--rebuild", "--json")
    assert rebuilt["rows"] > 0
    assert rows_of(spark, lakehouse, task) == [(1, 4), (3, 3), (5, 5)]
    assert [one["done"] for one in command("maintain", str(task.spec), "--json") if "expire" in one["done"]] == []


def rows_of(spark, lakehouse, task):
    return sorted((row.id, row.v) for row in spark.table(lakehouse.silver(task.database, "t")).collect())
