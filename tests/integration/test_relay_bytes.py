"""The relay's bytes are the server's, whatever happens in between."""

import os
import signal
import time
from pathlib import Path

import pytest

from dmdelta.errors import CorruptBinlog
from dmdelta.model.retry import Retry
from dmdelta.segments import list_segments
from dmdelta.source.relay.process import start_relay
from dmdelta.source.relay.relay_task import StartAfter, StartAt, StartEdge
from dmdelta.source.relay.session import ServerSession
from tests.support.relaying import catch_up, endpoint_of, files_differ, relay_task, relayed_bytes, wait_until
from tests.support.servers import Server, running


@pytest.fixture(params=["mysql80", "mysql57", "mariadb"])
def server(request: pytest.FixtureRequest) -> Server:
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def own80():
    """A MySQL 8.0 whose binlog a test may rotate, fill and break."""
    with running("mysql80") as own:
        yield own


def fill(server: Server, database: str, rows: int = 40) -> None:
    server.execute(
        "CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY AUTO_INCREMENT, text VARCHAR(300))",
        *["INSERT INTO t (text) VALUES (REPEAT('x', 250)), ('é')"] * rows,
        database=database,
    )


def test_closed_files_are_copied_byte_by_byte(server: Server, tmp_path: Path) -> None:
    """Over rotations and several runs, the concatenated segments equal the server's files."""
    task = relay_task(server, tmp_path)
    database = server.fresh_database("bytes")
    for _ in range(3):
        fill(server, database)
        server.execute("FLUSH BINARY LOGS")
        catch_up(task)
        fill(server, database)
        catch_up(task)
    server.execute("FLUSH BINARY LOGS")
    catch_up(task)
    assert files_differ(task, server) == []
    assert len(list_segments(task.folder, "src")) >= 6


def test_files_without_checksums_are_copied_too(tmp_path: Path) -> None:
    """Checksums belong to a file: NONE and CRC32 alternate in one log."""
    with running("mysql80", binlog_checksum="NONE") as server:
        database = server.fresh_database("sums")
        fill(server, database)
        server.execute("SET GLOBAL binlog_checksum = CRC32")
        fill(server, database)
        server.execute("SET GLOBAL binlog_checksum = NONE")
        fill(server, database)
        server.execute("FLUSH BINARY LOGS")
        task = relay_task(server, tmp_path)
        catch_up(task)
        assert files_differ(task, server) == []


def test_mariadb_compressed_and_annotated_events_are_copied(tmp_path: Path) -> None:
    """Annotate events, which MariaDB sends only on request, are included: no byte is missing."""
    with running("mariadb", log_bin_compress="ON", binlog_annotate_row_events="ON") as server:
        fill(server, server.fresh_database("packed"))
        server.execute("FLUSH BINARY LOGS")
        task = relay_task(server, tmp_path)
        catch_up(task)
        assert files_differ(task, server) == []


def test_an_event_of_many_packets_is_copied(own80: Server, tmp_path: Path) -> None:
    """One row of 64 MB is one event in several packets of the protocol."""
    own80.execute("SET GLOBAL max_allowed_packet = 268435456")
    database = own80.fresh_database("wide")
    own80.execute(
        "CREATE TABLE wide (id INT PRIMARY KEY, body LONGBLOB)",
        "INSERT INTO wide SELECT 1, REPEAT('0123456789abcdef', 4 << 20)",
        "FLUSH BINARY LOGS",
        database=database,
    )
    start = own80.binlog_files()[-2].name
    task = relay_task(own80, tmp_path, start=StartAt(start))
    catch_up(task)
    place = own80.datadir / start
    assert place.stat().st_size > 64 << 20
    assert b"\xfebin" + relayed_bytes(task, start) == place.read_bytes()


def test_a_killed_relay_resumes_without_lost_or_repeated_bytes(own80: Server, tmp_path: Path) -> None:
    """SIGKILL at any time leaves neither a gap nor a truncated segment."""
    database = own80.fresh_database("killed")
    own80.execute("FLUSH BINARY LOGS")
    start = own80.binlog_files()[-1].name
    task = relay_task(own80, tmp_path, start=StartAt(start), until_caught_up=False)
    for _ in range(4):
        relay = start_relay(task)
        fill(own80, database, rows=150)
        wait_until(lambda relay=relay: relay.status() is not None and relay.status().state == "streaming")
        os.kill(relay.pid, signal.SIGKILL)
        assert relay.wait(5)
        assert "signal 9" in str(relay.error())
    own80.execute("FLUSH BINARY LOGS")
    catch_up(relay_task(own80, tmp_path))
    assert b"\xfebin" + relayed_bytes(task, start) == (own80.datadir / start).read_bytes()
    assert not list(task.folder.glob("*/*/*.part"))


@pytest.mark.parametrize("point", ["relay-before-rename", "relay-after-rename"])
def test_a_crash_around_the_rename_loses_and_repeats_nothing(
    own80: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """The relay dies right before or after a segment is renamed; the next one resumes exactly there."""
    database = own80.fresh_database("rename")
    own80.execute("FLUSH BINARY LOGS")
    task = relay_task(own80, tmp_path, start=StartAt(own80.binlog_files()[-1].name))
    fill(own80, database)
    monkeypatch.setenv("DMDELTA_FAILPOINT", point)
    relay = start_relay(task)
    assert relay.wait(20)
    assert "signal 9" in str(relay.error())
    monkeypatch.delenv("DMDELTA_FAILPOINT")
    fill(own80, database)
    own80.execute("FLUSH BINARY LOGS")
    catch_up(task)
    name = task.start.binlog_file
    assert b"\xfebin" + relayed_bytes(task, name) == (own80.datadir / name).read_bytes()


def test_a_killed_connection_is_replaced(server: Server, tmp_path: Path) -> None:
    """After KILL on the dump thread the relay reconnects, and nothing is lost."""
    database = server.fresh_database("kill")
    server.execute("FLUSH BINARY LOGS")
    start = server.binlog_files()[-1].name
    task = relay_task(server, tmp_path, start=StartAt(start), until_caught_up=False)
    with start_relay(task) as relay:
        for _ in range(3):
            wait_until(lambda: dump_threads(server))
            for thread in dump_threads(server):
                server.execute(f"KILL {thread}")
            fill(server, database)
            end = server.position()
            wait_until(lambda end=end: on_disk(relay) >= (end[0], end[1]))
        assert relay.poll()
    assert relay.error() is None
    server.execute("FLUSH BINARY LOGS")
    catch_up(relay_task(server, tmp_path))
    assert b"\xfebin" + relayed_bytes(task, start) == (server.datadir / start).read_bytes()


def on_disk(relay) -> tuple[str, int]:
    status = relay.status()
    return (status.binlog_file, status.offset) if status else ("", 0)


def dump_threads(server: Server) -> list[int]:
    return [row[0] for row in server.query("SHOW PROCESSLIST") if "Binlog Dump" in str(row[4])]


def test_a_restarted_server_is_followed(tmp_path: Path) -> None:
    """After a shutdown or a crash the server continues in its next file, and so does the relay."""
    with running("mysql80") as server:
        database = server.fresh_database("restart")
        fill(server, database)
        catch_up(relay_task(server, tmp_path))
        wait_until(lambda: not dump_threads(server))  # a server that stops waits for them
        server.restart()
        fill(server, database)
        patient = relay_task(server, tmp_path, until_caught_up=False, retry=Retry(first=0.2, longest=1.0, attempts=60))
        with start_relay(patient) as relay:
            wait_until(lambda: on_disk(relay) >= server.position()[:2])
            server.kill()
            server.start()
            fill(server, database)
            wait_until(lambda: on_disk(relay) >= server.position()[:2])
        server.execute("FLUSH BINARY LOGS")
        task = relay_task(server, tmp_path)
        catch_up(task)
        assert len(server.binlog_files()) == 4
        assert files_differ(task, server) == []


def test_a_long_transaction_does_not_hold_back_earlier_ones(own80: Server, tmp_path: Path) -> None:
    """With few transactions, a segment is published at a transaction boundary within seconds."""
    database = own80.fresh_database("small")
    task = relay_task(own80, tmp_path, start=StartEdge.CURRENT, until_caught_up=False)
    with start_relay(task) as relay:
        wait_until(lambda: relay.status() is not None and relay.status().state == "streaming")
        began = time.monotonic()
        fill(own80, database, rows=1)
        end = own80.position()[:2]
        wait_until(lambda: list_segments(task.folder, "src")[-1:] and on_disk(relay) >= end, seconds=5)
        assert time.monotonic() - began < 4


@pytest.mark.parametrize("flavor", ["mysql80", "mariadb"])
def test_a_start_after_a_gtid_set_begins_at_the_next_transaction(
    request: pytest.FixtureRequest, tmp_path: Path, flavor: str
) -> None:
    """The first byte relayed is the first transaction that is not in the set."""
    server = request.getfixturevalue(flavor)
    database = server.fresh_database("after")
    fill(server, database)
    server.execute("FLUSH BINARY LOGS")
    fill(server, database)
    binlog_file, offset, gtids = server.position()
    fill(server, database)
    task = relay_task(server, tmp_path, start=StartAfter(gtids))
    catch_up(task)
    first = list_segments(task.folder, "src")[0]
    events = server.query(f"SHOW BINLOG EVENTS IN '{binlog_file}' FROM {offset}")
    # MariaDB may put a checkpoint event of its own in between.
    following = next(row[1] for row in events if row[2] == "Gtid")
    assert (first.binlog_file, first.start) == (binlog_file, following)


def test_a_start_at_the_end_of_a_gtid_set_waits_at_the_log_s_end(own80: Server, tmp_path: Path) -> None:
    """After the whole GTID set there is nothing to relay, and the relay knows its exact position."""
    fill(own80, own80.fresh_database("all"))
    task = relay_task(own80, tmp_path, start=StartAfter(own80.position()[2]))
    catch_up(task)
    assert list_segments(task.folder, "src") == []
    fill(own80, own80.fresh_database("all"))
    catch_up(task)
    assert sum(segment.size for segment in list_segments(task.folder, "src")) > 0


def test_a_start_in_the_middle_of_a_file_needs_a_transaction_boundary(own80: Server, tmp_path: Path) -> None:
    """A given position that is not a boundary is refused at every start; the error names the nearest one."""
    fill(own80, own80.fresh_database("middle"))
    name, offset, _ = own80.position()
    fill(own80, own80.fresh_database("middle"))
    refused = relay_task(own80, tmp_path, start=StartAt(name, offset - 31))
    for _ in range(2):
        with pytest.raises(CorruptBinlog, match="is not a transaction boundary") as caught:
            catch_up(refused)
        assert caught.value.context["nearest"] <= offset
        assert list_segments(refused.folder, "src") == []
    catch_up(relay_task(own80, tmp_path, start=StartAt(name, offset)))
    assert list_segments(refused.folder, "src")[0].start == offset


def test_positions_beyond_32_bits_are_reached_from_the_start_of_the_file(
    own80: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An offset that COM_BINLOG_DUMP cannot name is found by reading the file from its first event."""
    database = own80.fresh_database("far")
    own80.execute("FLUSH BINARY LOGS")
    name = own80.binlog_files()[-1].name
    task = relay_task(own80, tmp_path, start=StartAt(name))
    fill(own80, database)
    catch_up(task)
    monkeypatch.setattr("dmdelta.source.relay.session.LARGEST_OFFSET", 1000)
    monkeypatch.setattr("dmdelta.source.relay.dump.LARGEST_OFFSET", 1000)
    monkeypatch.setattr(ServerSession, "_artificial", only_rotates(ServerSession._artificial))
    fill(own80, database)
    own80.execute("FLUSH BINARY LOGS")
    catch_up(task)
    assert b"\xfebin" + relayed_bytes(task, name) == (own80.datadir / name).read_bytes()


def only_rotates(original):
    """Heartbeat offsets are compared modulo the patched limit: leave them out."""

    def artificial(self, piece, cutter, stalled):
        return original(self, piece, cutter, stalled) if piece.header[1] == 4 else 0

    return artificial


def test_a_huge_transaction_passes_in_little_memory(tmp_path: Path) -> None:
    """One transaction of more than 1 GB is one segment, and the relay uses less than 300 MB."""
    with running("mysql80", max_binlog_size="1G", innodb_buffer_pool_size="256M") as server:
        database = server.fresh_database("huge")
        server.execute(
            "SET GLOBAL innodb_redo_log_capacity = 1073741824",
            "SET SESSION sql_log_bin = 0",
            "CREATE TABLE seed (id INT PRIMARY KEY, body LONGBLOB)",
            "SET SESSION sql_log_bin = 1",
            "CREATE TABLE sink (id INT PRIMARY KEY AUTO_INCREMENT, body LONGBLOB) ENGINE=BLACKHOLE",
            database=database,
        )
        statement = "INSERT INTO sink (body) SELECT REPEAT(CHAR(65 + n), 4 << 20) FROM ("
        statement += " UNION ALL ".join(f"SELECT {number} AS n" for number in range(64)) + ") AS numbers"
        server.execute("BEGIN", *[statement] * 4, "COMMIT", database=database)
        assert server.binlog_files()[0].stat().st_size > 1 << 30
        task = relay_task(server, tmp_path)
        relay = start_relay(task)
        peak = 0
        while relay.poll():
            peak = max(peak, peak_memory(relay.pid))
            time.sleep(0.05)
        assert relay.wait(1)
        assert relay.error() is None
        assert max(segment.size for segment in list_segments(task.folder, "src")) > 1 << 30
        assert 0 < peak < 300 << 20


def peak_memory(pid: int) -> int:
    """VmHWM in bytes; 0 once the process has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)


def test_the_newest_row_metadata_server_is_relayed_over_tls_when_asked(own80: Server, tmp_path: Path) -> None:
    """TLS with the server's CA works for log-in and dump; a wrong CA is refused with a hint."""
    from dmdelta.errors import SourceError
    from dmdelta.model.tls import Tls

    fill(own80, own80.fresh_database("tls"))
    ca = str(own80.datadir / "ca.pem")
    task = relay_task(own80, tmp_path, endpoint=endpoint_of(own80, tls=Tls(ca, verify_host=False)))
    catch_up(task)
    assert files_differ(task, own80) == []
    strict = endpoint_of(own80, tls=Tls(ca))
    with pytest.raises(SourceError, match="no TLS connection"):
        catch_up(relay_task(own80, tmp_path / "other", endpoint=strict))
