"""The test servers themselves: they start, log rows, restart, and always end with the tests."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pymysql
import pytest

from tests.support.servers import Server, running


@pytest.fixture(params=["mysql80", "mysql57", "mariadb"])
def server(request: pytest.FixtureRequest) -> Server:
    return request.getfixturevalue(request.param)


def test_a_server_logs_rows_in_row_format(server: Server) -> None:
    """Every server writes row events for a plain insert, and dmdelta's account may read the log's position."""
    database = server.fresh_database("servers")
    before = server.position()
    server.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", database=database)
    kinds = [str(row[2]) for row in server.query(f"SHOW BINLOG EVENTS IN '{before[0]}' FROM {before[1]}")]
    assert any(kind.startswith("Write_rows") for kind in kinds)
    with server.connect(server.user) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW MASTER STATUS")
        assert cursor.fetchone() is not None


def test_the_account_of_dmdelta_may_not_write(server: Server) -> None:
    """The generated account has the documented privileges only."""
    database = server.fresh_database("servers")
    denied = pytest.raises(pymysql.err.OperationalError, match="denied")
    with server.connect(server.user) as connection, connection.cursor() as cursor, denied:
        cursor.execute(f"CREATE TABLE `{database}`.t (id INT)")


def test_overrides_and_restart_keep_the_data() -> None:
    """Options given at the start or at a restart are in effect, and the data are kept."""
    with running("mysql80", binlog_row_image="MINIMAL", gtid_mode=None, enforce_gtid_consistency=None) as server:
        assert server.query("SELECT @@binlog_row_image, @@gtid_mode") == (("MINIMAL", "OFF"),)
        server.execute("CREATE DATABASE kept")
        server.restart(binlog_row_image="NOBLOB")
        assert server.query(
            "SELECT @@binlog_row_image, COUNT(*) FROM information_schema.schemata WHERE schema_name='kept'"
        ) == (("NOBLOB", 1),)


def test_a_server_ends_with_a_killed_test_process() -> None:
    """A test process that dies by SIGKILL leaves no server behind."""
    program = (
        "from tests.support.servers import running\nwith running('mysql80') as s:\n print(s.pid, flush=True)\n input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
    end = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}").exists(), f"server {pid} outlived test process; kill it: {os.getpid()}"
