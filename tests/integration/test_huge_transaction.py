"""One huge transaction goes from the server to silver in bounded memory."""

from collections.abc import Iterator

import pytest

from dmdelta.lakehouse.layout import Lakehouse
from tests.support.memory import PeakMemory
from tests.support.servers import Server, running
from tests.support.task import Task

ROW_BYTES = 19_200
SMALL = pytest.param(14_000, 256 << 20, 0.6e9, id="256 MB")
GIGABYTE = pytest.param(56_000, 1 << 30, 1.2e9, id="1 GB", marks=pytest.mark.long)


@pytest.fixture
def server() -> Iterator[Server]:
    """A server of its own: a gigabyte in the shared server's binlog would slow down every later test."""
    with running("mysql80") as running_server:
        yield running_server


@pytest.mark.parametrize(("rows", "logged_bytes", "limit_bytes"), [SMALL, GIGABYTE])
def test_a_huge_transaction_stays_within_memory(server, spark, tmp_path, rows, logged_bytes, limit_bytes):
    """No Python process (relay, driver, executors' workers) takes more than the limit, and every row arrives."""
    task = Task(tmp_path, server, server.fresh_database("huge"))
    task.start_here()
    server.execute(
        "CREATE TABLE t (id INT NOT NULL PRIMARY KEY, body LONGTEXT NOT NULL)",
        "SET SESSION cte_max_recursion_depth = 100000",
        f"INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) "
        f"SELECT i, REPEAT(MD5(i), {ROW_BYTES // 32}) FROM n",
        database=task.database,
    )
    assert max(int(size) for _, size, *_ in server.query("SHOW BINARY LOGS")) > logged_bytes
    with task.process("--until-caught-up") as process, PeakMemory(process.pid) as peak:
        assert process.wait(540) == 0, process.log()
    assert peak.samples > 10
    assert 0 < peak.bytes < limit_bytes, f"{peak.bytes:,} bytes"
    silver = spark.table(Lakehouse(root=str(task.root)).silver(task.database, "t"))
    assert silver.selectExpr("count(*)", "min(length(body))", "sum(id)").first() == (
        rows,
        ROW_BYTES,
        rows * (rows + 1) // 2,
    )
