"""One transaction of more than 1 GB goes from the server to silver in bounded memory."""

from collections.abc import Iterator

import pytest

from dmdelta.lakehouse.place import Lakehouse
from tests.support.memory import PeakMemory
from tests.support.servers import Server, running
from tests.support.task import Task

LIMIT_BYTES = 1.2e9
ROWS = 56_000
ROW_BYTES = 19_200


@pytest.fixture
def server() -> Iterator[Server]:
    """One of its own: a gigabyte in the shared one's binlog would burden every test after it."""
    with running("mysql80") as running_server:
        yield running_server


def test_a_transaction_of_a_gigabyte_stays_within_memory(server, spark, tmp_path):
    """No Python process (relay, driver, executors' workers) takes 1.2 GB, and every row arrives."""
    task = Task(tmp_path, server, server.fresh_database("huge"))
    task.start_here()
    server.execute(
        "CREATE TABLE t (id INT NOT NULL PRIMARY KEY, body LONGTEXT NOT NULL)",
        "SET SESSION cte_max_recursion_depth = 100000",
        f"INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS}) "
        f"SELECT i, REPEAT(MD5(i), {ROW_BYTES // 32}) FROM n",
        database=task.database,
    )
    assert max(int(size) for _, size, *_ in server.query("SHOW BINARY LOGS")) > 1 << 30
    with task.process("--until-caught-up") as process, PeakMemory(process.pid) as peak:
        assert process.wait(540) == 0, process.log()
    assert peak.samples > 10
    assert 0 < peak.bytes < LIMIT_BYTES, f"{peak.bytes:,} bytes"
    silver = spark.table(Lakehouse(root=str(task.root)).silver(task.database, "t"))
    assert silver.selectExpr("count(*)", "min(length(body))", "sum(id)").first() == (
        ROWS,
        ROW_BYTES,
        ROWS * (ROWS + 1) // 2,
    )
