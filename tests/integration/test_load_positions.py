"""A binlog file of more than 4 GiB: its positions do not fit into the 32 bits of its events."""

import os
import re
import shutil
import signal
import time

import pytest
from pyspark.sql import SparkSession

from dmdelta.failpoint import CrashPoint
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.segments import list_segments
from dmdelta.source.relay.relay_task import StartAfter
from dmdelta.source.relay.start_position import find_on_server
from tests.support import huge_binlog
from tests.support.check import assert_tables_equal_source
from tests.support.huge_binlog import KEPT, WRAP
from tests.support.memory import PeakMemory
from tests.support.oracle import bronze_vs_binlog, logged_gtids
from tests.support.relaying import endpoint_of, wait_until
from tests.support.servers import Server, running
from tests.support.task import Task


@pytest.mark.long
@pytest.mark.parametrize("name", ["mysql80", "mariadb"])
def test_positions_beyond_32_bits(name, spark, tmp_path):
    """One transaction of more than 4 GiB: its selected rows arrive once, under their true position.

    The relay is killed within it, and after it, where it resumes from a position that does not fit into 32 bits.
    """
    with running(name) as server:
        task = Task(tmp_path / "task", server, server.fresh_database("far"), tables=(KEPT,))
        huge_binlog.create_tables(server, task.database)
        task.start_here()
        since = server.position()[:2]
        began = time.monotonic()
        file, size = huge_binlog.write_beyond_4_gib(server, task.database)
        print(f"{name}: {size:,} bytes in {time.monotonic() - began:.0f} s")
        try:
            follow_through_kills(task)
            segments = list_segments(task.relay / task.source_id, task.source_id)
        finally:
            shutil.rmtree(task.relay, ignore_errors=True)
        assert max(segment.end for segment in segments if segment.binlog_file == file) == size
        assert_tables_equal_source(spark, task, [KEPT])
        bronze = spark.table(Lakehouse(root=str(task.root)).bronze)
        assert bronze_vs_binlog(server, bronze, [task.database], since, (KEPT,), counted=False) == []
        beyond = bronze.where(f"op <> 'schema' AND binlog_file = '{file}' AND binlog_pos > {WRAP}").count()
        assert beyond >= 3
        begin_beyond(spark, task, file)


def follow_through_kills(task: Task) -> None:
    """Catch up; the relay dies with a part of the transaction on disk, and again right after it has the whole."""
    task.arm(CrashPoint.RELAY_AFTER_RENAME)
    with task.process("--until-caught-up") as process, PeakMemory(process.pid) as peak:
        wait_until(lambda: process.poll() is not None or in_the_making(task) > 1 << 30, 240)
        os.kill(process.relay_pid(), signal.SIGKILL)
        assert process.wait(540) == 0, process.log()
        told = process.whole_log()
    assert told.count("relay process ended") == 2, told[-6000:]
    begun = [int(at) for at in re.findall(r'"msg": "relay connected".*"at": (\d+)', told)]
    assert len(begun) == 3
    assert begun[-1] > WRAP, begun
    assert peak.bytes < 600_000_000, f"{peak.bytes:,} bytes"


def silver_of(task: Task) -> str:
    return Lakehouse(root=str(task.root)).silver(task.database, KEPT)


def in_the_making(task: Task) -> int:
    """Bytes of the segment that the relay is writing."""
    try:
        return max((part.stat().st_size for part in task.relay.rglob("*.part")), default=0)
    except FileNotFoundError:
        return 0  # it has just been renamed


def begin_beyond(spark: SparkSession, first: Task, file: str) -> None:
    """Start another task after the transaction in its file; a GTID set leads to the same position."""
    gtids = logged_gtids(first.server, file)
    behind = [offset for offset in gtids if offset > WRAP]
    assert behind, "nobody has committed while the transaction was written: the server's group commit has changed"
    print(f"{len(behind)} transactions behind the huge one, from {behind[0]:,} on")
    later = Task(first.folder.with_name("later"), first.server, first.database, tables=(KEPT,))
    later.settings["meta"] = {"binlog-name": file, "binlog-pos": behind[0]}
    later.catch_up()
    position = f"(binlog_file = '{file}' AND binlog_pos >= {behind[0]} OR binlog_file > '{file}')"
    landed = f"SELECT to_json(after) AS row FROM {Lakehouse(root=str(first.root)).bronze} WHERE op = 'insert'"
    there = f"SELECT to_json(named_struct('id', id, 'place', place)) AS row FROM {silver_of(later)}"
    wanted = sorted(row["row"] for row in spark.sql(f"{landed} AND {position}").collect())
    assert sorted(row["row"] for row in spark.sql(there).collect()) == wanted
    assert len(wanted) >= len(behind)
    start = StartAfter(set_before(first.server, gtids[behind[0]]))
    assert find_on_server(endpoint_of(first.server), start).begin == (file, behind[0])


def set_before(server: Server, gtid: str) -> str:
    """The GTID set of all transactions of a server before one of its own."""
    begin, sign, number = re.fullmatch(r"(.*)([:-])(\d+)", gtid).groups()
    return f"{begin}{sign}{'1-' if server.flavor == 'mysql' else ''}{int(number) - 1}"


@pytest.mark.parametrize("name", ["mysql80", "mariadb"])
def test_a_gtid_set_leads_to_a_position_that_events_hold_only_in_part(name, request, monkeypatch):
    """With 12 bits instead of 32: the GTID set before each transaction of a file leads to it, and to the log's end."""
    server: Server = request.getfixturevalue(name)
    server.execute(
        "FLUSH BINARY LOGS",
        "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, body VARCHAR(300))",
        *["INSERT INTO t (body) VALUES (REPEAT('x', 250))"] * 60,
        database=server.fresh_database("told"),
    )
    monkeypatch.setattr("dmdelta.source.relay.gtid_lookup.LARGEST_OFFSET", (1 << 12) - 1)
    file, end, gtids = server.position()
    assert end > 4 << 12
    for offset, gtid in list(logged_gtids(server, file).items())[1::13]:
        start = StartAfter(set_before(server, gtid))
        assert find_on_server(endpoint_of(server), start).begin == (file, offset)
    assert find_on_server(endpoint_of(server), StartAfter(gtids)).begin == (file, end)
