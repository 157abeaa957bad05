"""The spec's host and port lead to a server that has executed the same transactions in another order."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from dmdelta.bronze.datasource import register
from dmdelta.cli.main import execute
from dmdelta.lakehouse.layout import Lakehouse
from tests.support.check import assert_silver_equals_source
from tests.support.replication import follow, promote
from tests.support.servers import Server, running
from tests.support.task import Task

TABLES = ("t", "k", "u")
CREATED = (
    "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))",
    "CREATE TABLE k (a INT)",
    "CREATE TABLE u (id INT PRIMARY KEY)",
    "INSERT INTO u VALUES (1)",
)
WRITES: dict[int, Sequence[str]] = {
    1: ["INSERT INTO t VALUES (1, 'one')"],
    2: ["INSERT INTO t VALUES (2, 'two')"],
    3: ["INSERT INTO k VALUES (3), (33)"],
    4: ["UPDATE t SET v = 'four' WHERE id = 1"],
    5: ["ALTER TABLE u ADD c INT DEFAULT 5"],
    6: ["INSERT INTO u (id, c) VALUES (6, 66)"],
    7: ["INSERT INTO k VALUES (7)"],
    8: ["XA START 'x'", "INSERT INTO k VALUES (8)", "XA END 'x'", "XA PREPARE 'x'"],
    9: ["XA COMMIT 'x'"],
    10: ["INSERT INTO k VALUES (10)"],
}
FIRST = (1, 3, 5, 8)
"""The transactions that the first server has executed; the second one has all of them, in order."""
GROUP = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"


def write(server: Server, database: str, number: int) -> None:
    """Execute a transaction with the GTID that it has on each server; every second one is compressed, if possible."""
    if server.flavor == "mariadb":
        domain = 1 if number in FIRST else 2
        named = f"SET server_id = 1, gtid_domain_id = {domain}, gtid_seq_no = {number}"
    else:
        named = f"SET GTID_NEXT = '{GROUP}:{number}'"
    squeezed = ["SET binlog_transaction_compression = ON"] if server.version.startswith("8") and number % 2 else []
    server.execute(*squeezed, named, *WRITES[number], database=database)


def verified(task: Task, capsys: pytest.CaptureFixture[str]) -> list[object]:
    """The differences that `dmdelta verify` finds."""
    capsys.readouterr()
    with task.environment():
        execute(["verify", str(task.spec), "--json"])
    out, err = capsys.readouterr()
    assert out, err
    return list(json.loads(out)[0]["differences"])


@pytest.mark.parametrize(
    "flavor",
    ["mysql80", pytest.param("mysql57", marks=pytest.mark.long), pytest.param("mariadb", marks=pytest.mark.long)],
)
def test_each_transaction_lands_once(flavor: str, tmp_path: Path, spark, capsys) -> None:
    """Rows and statements of transactions that the first server's log had are skipped in the second one's."""
    with running(flavor) as old, running(flavor, server_id="2", log_slave_updates="ON") as new:
        database = old.fresh_database("order")
        follow(new, old)
        old.execute(*CREATED, database=database)
        promote(new, old)
        for number in FIRST:
            write(old, database, number)
        task = Task(tmp_path / "task", old, database, tables=TABLES)
        task.catch_up()
        relayed = old.position()[2]
        for number in WRITES:
            write(new, database, number)
        task.server = new
        task.catch_up()

        assert_silver_equals_source(spark, task)
        sources = [spark.table(Lakehouse(root=str(task.root)).bronze)]
        if flavor != "mysql57":  # its log has no column names
            register(spark)
            sources.append(spark.read.format("mysql_binlog").option("path", str(task.relay / "s1")).load())
        for rows in sources:
            epochs = rows.where("op <> 'schema'").groupBy("gtid").agg({"epoch": "collect_set"}).collect()
            assert {len(found) for _, found in epochs} == {1}
            assert {found[0] for _, found in epochs} == {1, 2}

        start = Task(tmp_path / "start", new, database, tables=TABLES, settings={"meta": {"binlog-gtid": relayed}})
        start.catch_up()
        landed = spark.table(Lakehouse(root=str(start.root)).bronze).where("op <> 'schema'").select("gtid").distinct()
        numbers = {int(gtid.replace(":", "-").rsplit("-", 1)[1]) for (gtid,) in landed.collect()}
        assert numbers == set(WRITES) - set(FIRST)

        assert verified(task, capsys) == []
        assert verified(start, capsys) == []
    assert verified(task, capsys) == []  # from the relay's segments
