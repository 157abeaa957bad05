"""`dmdelta validate`: the comparison of silver with the source finds exactly the differences."""

import json

import pytest

from dmdelta.cli.main import execute
from dmdelta.lakehouse.layout import Lakehouse
from tests.support.check import assert_silver_equals_source
from tests.support.damage import damage, key_of, rows_to_damage
from tests.support.loadable import fill
from tests.support.task import Task
from tests.support.workload import Workload


def validate(task, capsys, *arguments, code=0):
    """What a comparison has found, by table."""
    capsys.readouterr()
    with task.environment():
        ended = execute(["validate", str(task.spec), "--json", *arguments])
    out, err = capsys.readouterr()
    assert ended == code, (out + err)[-4000:]
    return {line["table"].split(".")[1]: line for line in json.loads(out)} if code in (0, 6) else err


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("server", ["mysql80", "mariadb", "mysql57"])
def test_every_type_compares_and_every_damage_is_found(server, request, spark, tmp_path, capsys):
    """All types and kinds of keys: nothing differs until silver is damaged, then only that, and --fix repairs it."""
    source = request.getfixturevalue(server)
    task = Task(tmp_path, source, source.fresh_database("validate"), mode="all")
    fill(source, task.database, 3_000)
    task.catch_up()
    found = validate(task, capsys)
    assert [name for name, line in found.items() if line["missing"] + line["extra"] + line["different"]] == []
    assert {name: line["uncompared"] for name, line in found.items() if line["uncompared"]} == {}
    assert found["nothing"]["rows"] == found["nothing"]["silver_rows"] == 0
    assert found["big"]["rows"] == found["big"]["silver_rows"] == 3_000
    assert len(found) == len(source.query("SHOW TABLES", database=task.database))

    big = Lakehouse(root=str(task.root)).silver(task.database, "big")
    ids = rows_to_damage(spark, big)
    wanted = damage(spark, big, ids)
    keys = {what: key_of(what, ids) for what in ids}
    (line,) = validate(task, capsys, f"--table={task.database}.big", "--limit=100", code=6).values()
    found = {row["key"]: row for row in line["differences"]}
    assert {key: row["kind"] for key, row in found.items()} == wanted
    assert found[keys["a year"]]["values"] == {"y": ["2026", "2025"]}
    assert found[keys["swapped columns"]]["values"].keys() == {"t", "w"}
    assert found[keys["a truncated decimal"]]["values"] == {"p": ["-123456789.125", "-123456789.120"]}

    validate(task, capsys, f"--table={task.database}.big", "--fix")
    validate(task, capsys, f"--table={task.database}.big")
    source.execute(
        "UPDATE big SET k = -k WHERE id < 40", f"DELETE FROM big WHERE id = {ids['a lost row']}", database=task.database
    )
    task.catch_up()
    assert_silver_equals_source(spark, task)


def test_damage_is_found_and_repaired_and_an_unlanded_change_is_an_error(mysql80, spark, tmp_path, capsys):
    """A lost row and a changed one are reported. A change that has not landed is an error, not a difference."""
    task = Task(tmp_path, mysql80, mysql80.fresh_database("validate"))
    mysql80.execute(
        "CREATE TABLE a (id INT PRIMARY KEY, v FLOAT, at TIMESTAMP(3) DEFAULT CURRENT_TIMESTAMP(3))",
        "INSERT INTO a (id, v) VALUES (1, 0.1), (2, NULL), (3, -2.5e10)",
        database=task.database,
    )
    task.catch_up()
    assert validate(task, capsys)["a"]["rows"] == 3
    place = Lakehouse(root=str(task.root)).silver(task.database, "a")
    spark.sql(f"DELETE FROM {place} WHERE id = 1")
    spark.sql(f"UPDATE {place} SET at = at + INTERVAL 1 MILLISECOND WHERE id = 3")
    found = validate(task, capsys, code=6)["a"]["differences"]
    assert {(row["key"], row["kind"]) for row in found} == {("1", "missing"), ("3", "different")}
    assert [set(row["values"]) for row in found if row["key"] == "3"] == [{"at"}]
    validate(task, capsys, "--fix")
    validate(task, capsys)
    mysql80.execute("INSERT INTO a (id) VALUES (4)", database=task.database)
    assert "--until-caught-up" in complaint(task, capsys, "--wait=0")


def complaint(task, capsys, *arguments):
    """The error of a comparison that cannot be made."""
    capsys.readouterr()
    with task.environment():
        assert execute(["validate", str(task.spec), *arguments]) == 6
    return capsys.readouterr().err


@pytest.mark.long
@pytest.mark.timeout(900)
def test_tables_that_are_written_all_the_time_compare(mysql80, tmp_path, capsys):
    """Both sides are read at one position, so writers make no difference."""
    task = Task(tmp_path, mysql80, mysql80.fresh_database("validate"), mode="all", tables=("customers", "orders"))
    with Workload(mysql80, task.database, seed=3, per_second=10) as work, task.process() as process:
        work.wait_for(30)
        process.wait_for("range applied", seconds=300, times=3)
        for _ in range(2):
            found = validate(task, capsys)
            assert all(line["rows"] == line["silver_rows"] > 0 for line in found.values())
            work.wait_for(work.transactions + 10)
