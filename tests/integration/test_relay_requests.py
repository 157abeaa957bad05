"""Requests of a run to its relay process."""

import subprocess
import sys
from pathlib import Path

import pytest

from dmdelta.segments import list_segments
from dmdelta.source.relay.process import RelayProcess
from dmdelta.source.relay.segment_writer import SUFFIX
from tests.support.relaying import catch_up, files_differ, relay_task, relayed_bytes, wait_until
from tests.support.servers import Server

PROGRAM = """
import sys
from dmdelta.source.relay import __main__ as relay, relay_task, segmenter
segmenter.CUT_SECONDS = 3600.0
relay_task.STATUS_SECONDS = 0.0
sys.exit(relay.main())
"""


def wait_for_a_look(relay: RelayProcess) -> None:
    """Wait until the relay has looked at its requests since now: it does so before it writes its status."""
    for _ in range(2):  # the first status may belong to an earlier look
        since = status.at if (status := relay.status()) is not None else 0.0
        wait_until(lambda since=since: (status := relay.status()) is not None and status.at > since)


@pytest.mark.parametrize("flavor", ["mysql80", "mariadb"])
def test_a_relay_publishes_on_request(request: pytest.FixtureRequest, tmp_path: Path, flavor: str) -> None:
    """A relay that would publish after an hour publishes complete transactions on request, each exactly once. What it
    receives after that waits for the next request.
    """
    server: Server = request.getfixturevalue(flavor)
    database = server.fresh_database("asked")
    server.execute("CREATE TABLE t (id INT PRIMARY KEY)", database=database)
    server.execute("FLUSH BINARY LOGS")
    task = relay_task(server, tmp_path, until_caught_up=False)
    child = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    child.stdin.write(task.to_json().encode() + b"\n")
    child.stdin.flush()
    with RelayProcess(task, child) as relay:
        wait_until(lambda: (status := relay.status()) is not None and status.state == "streaming")
        server.execute("INSERT INTO t VALUES (1)", database=database)
        binlog_file, end = server.position()[:2]

        def has_received() -> bool:
            return any(task.folder.glob(f"*/{binlog_file}/*{SUFFIX}"))

        wait_until(has_received)
        wait_for_a_look(relay)
        assert relayed_bytes(task, binlog_file) == b""

        def is_published() -> bool:
            relay.publish()
            # MariaDB may add a BINLOG_CHECKPOINT event after the position was read.
            return any(at.binlog_file == binlog_file and at.end >= end for at in list_segments(task.folder, "src"))

        wait_until(is_published)
        wait_for_a_look(relay)  # no request is left
        published = relayed_bytes(task, binlog_file)
        server.execute("INSERT INTO t VALUES (2)", database=database)
        end = server.position()[1]
        wait_until(has_received)
        wait_for_a_look(relay)
        assert relayed_bytes(task, binlog_file) == published
        wait_until(is_published)
    relay.publish()  # it has ended
    server.execute("FLUSH BINARY LOGS")
    catch_up(relay_task(server, tmp_path))
    assert files_differ(task, server) == []
