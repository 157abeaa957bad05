"""What stops a relay, and how it resumes after its server changed: errors name the cause and the next step."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from dmdelta.errors import CorruptBinlog, Fenced, PositionLost, SourceError, SourceUnavailable
from dmdelta.model.position import Position
from dmdelta.segments import list_segments
from dmdelta.source import server_end
from dmdelta.source.relay import session
from dmdelta.source.relay.__main__ import run_relay
from dmdelta.source.relay.dump import DumpRequest
from dmdelta.source.relay.process import start_relay, wait_for
from dmdelta.source.relay.purge import Known, purge
from dmdelta.source.relay.relay_dir import newest_begin
from dmdelta.source.relay.relay_task import RelayTask, StartAt, StartEdge, read_status
from dmdelta.source.relay.session import RelayRequests
from tests.support.gtids import spelled
from tests.support.relaying import (
    QUICK,
    catch_up,
    endpoint_of,
    files_differ,
    purged_to_the_newest,
    relay_task,
    relayed_bytes,
    wait_until,
)
from tests.support.replication import follow, promote
from tests.support.servers import Server, running


def insert(server: Server, database: str, rows: int = 5) -> None:
    server.execute(
        "CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)",
        *["INSERT INTO t (v) VALUES (1)"] * rows,
        database=database,
    )


def test_a_wrong_password_is_not_retried(mysql80: Server, tmp_path: Path) -> None:
    """It ends at once, in the parent and in the relay, and no message or file has the password."""
    task = relay_task(mysql80, tmp_path, endpoint=endpoint_of(mysql80, password="wr0ng-secret"))
    relay = start_relay(task)
    with pytest.raises(SourceError, match="Access denied") as caught:
        wait_for(relay, 20)
    assert not isinstance(caught.value, SourceUnavailable)
    assert "password" in caught.value.hint
    assert "wr0ng-secret" not in str(caught.value)
    status = read_status(task.folder)
    assert status.state == "failed"
    assert "wr0ng-secret" not in (task.folder / "status.json").read_text()


def test_an_unreachable_server_is_retried_and_then_given_up(tmp_path: Path) -> None:
    """No server listens: SourceUnavailable after the attempts that the task allows."""
    from dmdelta.source.endpoint import Endpoint

    task = RelayTask("src", str(tmp_path), Endpoint("127.0.0.1", 1, "nobody", ""), retry=QUICK)
    with pytest.raises(SourceUnavailable, match=r"127\.0\.0\.1:1"):
        catch_up(task)
    assert read_status(task.folder).retries == QUICK.attempts - 1


@pytest.mark.parametrize("flavor", ["mysql80", "mariadb"])
def test_missing_privileges_are_named(request: pytest.FixtureRequest, tmp_path: Path, flavor: str) -> None:
    """An account with SELECT only: the error names the privilege to grant."""
    server = request.getfixturevalue(flavor)
    user = f"reader_{time.monotonic_ns() % 10**9}"
    server.execute(
        "SET SESSION sql_log_bin = 0",
        f"CREATE USER '{user}'@'%' IDENTIFIED BY 'only-reads'",
        f"GRANT SELECT ON *.* TO '{user}'@'%'",
    )
    task = relay_task(server, tmp_path, endpoint=endpoint_of(server, user=user, password="only-reads"))
    with pytest.raises(SourceError, match="denied") as caught:
        catch_up(task)
    assert "GRANT REPLICATION SLAVE" in caught.value.hint


@pytest.mark.parametrize("flavor", ["mysql80", "mariadb"])
def test_a_purged_position_is_lost(tmp_path: Path, flavor: str) -> None:
    """When the server purged what comes next, the error names the missing transactions and the next step."""
    with running(flavor) as server:
        database = server.fresh_database("purged")
        insert(server, database)
        task = relay_task(server, tmp_path)
        catch_up(task)
        insert(server, database)
        server.execute("FLUSH BINARY LOGS")
        insert(server, database)
        server.execute("FLUSH BINARY LOGS")
        wait_until(lambda: purged_to_the_newest(server))
        with pytest.raises(PositionLost, match="purged") as caught:
            catch_up(task)
        assert "--remove-meta" in caught.value.hint
        assert caught.value.context["missing"] != "unknown"
        with pytest.raises(PositionLost, match=r"does not have binlog\.000001"):
            catch_up(relay_task(server, tmp_path / "first", start=StartAt("binlog.000001")))


def test_a_file_purged_after_it_was_relayed_whole_is_not_missed(tmp_path: Path) -> None:
    """The relay log ends at the end of a purged file: the next file continues it in the same epoch."""
    with running("mysql80") as server:
        database = server.fresh_database("whole")
        insert(server, database)
        with start_relay(relay_task(server, tmp_path, until_caught_up=False)) as relay:
            server.execute("FLUSH BINARY LOGS")
            wait_until(lambda: relay.status() is not None and relay.status().binlog_file == "binlog.000002")
        task = relay_task(server, tmp_path)
        for path in task.folder.glob("*/binlog.000002/*"):
            path.unlink()  # as if the relay had stopped at the very end of the first file
        wait_until(lambda: purged_to_the_newest(server))
        catch_up(task)
        assert {segment.epoch for segment in list_segments(task.folder, "src")} == {1}
        assert b"\xfebin" + relayed_bytes(task, "binlog.000002") != b"\xfebin"


@pytest.mark.parametrize("gtid", ["ON", "OFF"])
def test_reset_master_is_detected(tmp_path: Path, gtid: str) -> None:
    """After RESET MASTER the same file name is a different file: it is never continued, even at an existing offset."""
    with running("mysql80", gtid_mode=gtid, enforce_gtid_consistency=gtid) as server:
        database = server.fresh_database("reset")
        insert(server, database)
        task = relay_task(server, tmp_path)
        catch_up(task)
        time.sleep(1.1)  # a file is known by its second of creation
        server.execute("RESET MASTER")
        insert(server, database, rows=60)
        with pytest.raises(PositionLost, match="binlog was reset"):
            catch_up(task)


@pytest.mark.parametrize("flavor", ["mysql80", "mariadb"])
def test_a_failover_continues_in_a_new_epoch(tmp_path: Path, flavor: str) -> None:
    """A second server with the same GTID history takes over: no transaction is missing or duplicate."""
    with running(flavor) as old, running(flavor, server_id="2", log_slave_updates="ON") as new:
        database = old.fresh_database("failover")
        insert(old, database, rows=10)
        task = relay_task(old, tmp_path)
        catch_up(task)
        follow(new, old)
        insert(old, database, rows=7)
        promote(new, old)
        insert(new, database, rows=3)
        moved = relay_task(new, tmp_path)
        catch_up(moved)
        segments = list_segments(task.folder, "src")
        assert sorted({segment.epoch for segment in segments}) == [1, 2]
        gtids = gtids_of(segments)
        assert len(gtids) == len(set(gtids))
        assert union_of(gtids, flavor) == new.position()[2].replace("\n", "")
        new.execute("FLUSH BINARY LOGS")
        insert(new, database)
        catch_up(moved)
        assert max(segment.epoch for segment in list_segments(task.folder, "src")) == 2


@pytest.mark.parametrize("flavor", ["mysql80", "mariadb"])
def test_a_server_that_takes_over_after_a_purge_repeats_nothing(flavor: str, tmp_path: Path) -> None:
    """The relay's task knows what had landed at its start, the folder what had landed before the purge."""
    with running(flavor) as old, running(flavor, server_id="2", log_slave_updates="ON") as new:
        database = old.fresh_database("purged")
        follow(new, old)
        insert(old, database)
        task = relay_task(old, tmp_path, known=known_at(old))
        for _ in range(3):
            catch_up(task)
            landed = known_at(old)
            insert(old, database)
        purge(list_segments(task.folder, "src")[:-1], landed)
        catch_up(task)
        assert len(list_segments(task.folder, "src")) == 2

        promote(new, old)
        moved = relay_task(new, tmp_path, known=task.known)
        record = task.folder / "landed.json"
        record.rename(tmp_path / "lost.json")
        with pytest.raises(PositionLost, match="there are no GTIDs to locate the position"):
            catch_up(moved)
        (tmp_path / "lost.json").rename(record)
        insert(new, database)
        catch_up(moved)
        begin = newest_begin(task.folder)
        assert begin is not None
        assert (begin.epoch, begin.gtid_set) == (2, old.position()[2].replace("\n", ""))
        again = [segment for segment in list_segments(task.folder, "src") if segment.epoch == 2]
        assert len(gtids_of(again)) >= 5


def known_at(server: Server) -> Known:
    """Everything that a server has logged."""
    name, offset, gtids = server.position()
    return Known(Position(1, name, offset), gtids.replace("\n", ""))


def gtids_of(segments) -> list[str]:
    from dmdelta.binlog.events.boundary import scan_gtids

    found: list[str] = []
    for segment in segments:
        with open(segment.path, "rb") as stream:
            found += spelled(scan_gtids(stream, segment))
    return found


def union_of(gtids: list[str], flavor: str) -> str:
    from dmdelta.model.gtid import grown, parse_gtid_set, run_of

    return str(grown(parse_gtid_set("", "mariadb" if flavor == "mariadb" else "mysql"), map(run_of, gtids)))


def test_another_server_without_our_history_is_refused(mysql80: Server, tmp_path: Path) -> None:
    """A server that never executed what is relayed has another history: PositionLost names what it lacks."""
    with running("mysql80") as other:
        insert(mysql80, mysql80.fresh_database("mine"))
        catch_up(relay_task(mysql80, tmp_path))
        uuid = mysql80.query("SELECT @@server_uuid")[0][0]
        with pytest.raises(PositionLost, match="never executed") as caught:
            catch_up(relay_task(other, tmp_path))
        assert uuid in caught.value.context["missing"]


def test_a_lost_relay_folder_restarts_where_bronze_ends(mysql80: Server, tmp_path: Path) -> None:
    """From the landed position, but at no start if the server's log before it lacks what has landed."""
    insert(mysql80, mysql80.fresh_database("landed"))
    name, offset, gtids = mysql80.position()
    insert(mysql80, mysql80.fresh_database("landed"))
    start, known = StartAt(name, offset, epoch=4), Known(Position(4, name, offset), gtids)
    task = relay_task(mysql80, tmp_path, start=start, known=known)
    catch_up(task)
    first = list_segments(task.folder, "src")[0]
    assert (first.epoch, first.binlog_file, first.start) == (4, name, offset)
    foreign = Known(Position(4, name, offset), "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5")
    for _ in range(2):
        with pytest.raises(PositionLost, match="a different history"):
            catch_up(relay_task(mysql80, tmp_path / "other", start=start, known=foreign))


def test_a_first_start_that_ends_during_its_checks_is_checked_again(mysql80: Server, tmp_path: Path) -> None:
    """The epoch has no begin in the relay folder, until the file is read up to the position."""
    insert(mysql80, mysql80.fresh_database("landed"))
    name, offset, gtids = mysql80.position()
    insert(mysql80, mysql80.fresh_database("landed"))
    start, known = StartAt(name, offset, epoch=4), Known(Position(4, name, offset), gtids)
    task = relay_task(mysql80, tmp_path, start=start, known=known)
    looks = iter([False])
    run_relay(task, RelayRequests(lambda: next(looks, True)))  # once it is connected, it stops at the first event
    assert newest_begin(task.folder) is None
    foreign = Known(Position(4, name, offset), "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5")
    with pytest.raises(PositionLost, match="a different history"):
        catch_up(relay_task(mysql80, tmp_path, start=start, known=foreign))
    catch_up(task)
    begin = newest_begin(task.folder)
    assert begin is not None
    assert (begin.epoch, begin.binlog_file, begin.offset, begin.gtid_set) == (4, name, offset, gtids)


@pytest.mark.parametrize("flavor", ["mysql80", "mysql57"])
def test_a_restored_server_has_executed_what_it_has_not_logged(tmp_path: Path, flavor: str) -> None:
    """Its files' PREVIOUS_GTIDS lack `gtid_purged` of the dump. A server with a newer dump has another history."""
    foreign = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    with running(flavor) as server:
        server.execute("RESET MASTER", f"SET GLOBAL gtid_purged = '{foreign}:1-100'")
        insert(server, server.fresh_database("restored"))
        name, offset, gtids = server.position()
        start = StartAt(name, offset, epoch=4)
        insert(server, server.fresh_database("restored"))
        older = Known(Position(4, name, offset), gtids.replace(":1-100", ":1-90"))
        with pytest.raises(PositionLost, match="a different history"):
            catch_up(relay_task(server, tmp_path, start=start, known=older))
        for known in (replace(older, gtid_set=gtids), None):
            task = relay_task(server, tmp_path / str(known is None), start=start, known=known)
            catch_up(task)
            begin = newest_begin(task.folder)
            assert begin is not None
            assert begin.gtid_set == gtids


def test_a_second_relay_is_fenced_out(mysql80: Server, tmp_path: Path) -> None:
    """One relay per source: the second one names the process of the first."""
    task = relay_task(mysql80, tmp_path, until_caught_up=False, start=StartEdge.CURRENT)
    with start_relay(task) as first:
        wait_until(lambda: first.status() is not None)
        second = start_relay(task)
        with pytest.raises(Fenced, match="another relay") as caught:
            wait_for(second, 20)
        assert str(first.pid) in caught.value.hint
        assert first.poll()


def test_sigterm_ends_a_relay_within_seconds(mysql80: Server, tmp_path: Path) -> None:
    """It ends with code 0, and all segments on disk are complete."""
    relay = start_relay(relay_task(mysql80, tmp_path, until_caught_up=False))
    wait_until(lambda: relay.status() is not None and relay.status().state == "streaming")
    began = time.monotonic()
    relay.stop()
    assert time.monotonic() - began < 5
    assert relay.error() is None
    assert relay.status().state == "stopped"


def test_a_relay_ends_with_its_parent(mysql80: Server, tmp_path: Path) -> None:
    """When the process that started it ends, the relay ends, too."""
    relay = start_relay(relay_task(mysql80, tmp_path, until_caught_up=False))
    wait_until(lambda: relay.status() is not None and relay.status().state == "streaming")
    relay._child.stdin.close()
    assert relay.wait(5)
    assert relay.status().state == "stopped"


def test_a_frozen_server_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that sends neither an event nor a heartbeat counts as lost; when it answers again, the relay resumes."""
    monkeypatch.setattr("dmdelta.source.relay.dump.SILENT_HEARTBEATS", 2)
    monkeypatch.setattr("dmdelta.source.connection.CONNECT_TIMEOUT", 1)
    monkeypatch.setattr("dmdelta.source.connection.QUERY_TIMEOUT", 1)
    with running("mysql80") as server:
        task = relay_task(server, tmp_path, until_caught_up=False)
        insert(server, server.fresh_database("frozen"))
        frozen: list[float] = []

        def stop() -> bool:
            status = read_status(task.folder)
            if not frozen and status.state == "streaming" and status.offset > 4:
                frozen.append(time.monotonic())
                os.kill(server.pid, signal.SIGSTOP)
            return False

        with pytest.raises(SourceUnavailable):
            run_relay(task, RelayRequests(stop))
        os.kill(server.pid, signal.SIGCONT)
        insert(server, server.fresh_database("thawed"))
        server.execute("FLUSH BINARY LOGS")
        catch_up(relay_task(server, tmp_path))
        assert files_differ(task, server) == []


@pytest.mark.parametrize("flavor", ["mysql80", "mysql57", "mariadb"])
def test_a_relay_that_receives_nothing_knows_that_it_is_behind(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flavor: str
) -> None:
    """The end of the server's log is looked up on another connection while the relay streams."""
    server = request.getfixturevalue(flavor)
    database = server.fresh_database("behind")

    @contextmanager
    def silent(_: DumpRequest) -> Iterator[Iterator[None]]:
        yield (time.sleep(0.02) for _ in iter(int, 1))

    monkeypatch.setattr(server_end, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(session, "open_dump", silent)
    task, over = relay_task(server, tmp_path, until_caught_up=False, start=StartEdge.CURRENT), threading.Event()
    relay = threading.Thread(target=run_relay, args=(task, RelayRequests(over.is_set)))
    relay.start()
    try:
        wait_until(lambda: (status := read_status(task.folder)) is not None and status.state == "streaming")
        before = read_status(task.folder)
        assert before.server_end == Position(1, before.binlog_file, before.offset)
        insert(server, database)
        wait_until(lambda: read_status(task.folder).server_end == Position(1, *server.position()[:2]))
        after = read_status(task.folder)
        assert (after.binlog_file, after.offset) == (before.binlog_file, before.offset)
        assert after.server_end > before.server_end
    finally:
        over.set()
        relay.join()


def test_the_log_s_end_is_proven_when_nothing_is_new(mysql80: Server, tmp_path: Path) -> None:
    """Caught up twice: the second run reads nothing, and confirms that the relay is at the end of the server's log."""
    insert(mysql80, mysql80.fresh_database("idle"))
    task = relay_task(mysql80, tmp_path)
    catch_up(task)
    before = list_segments(task.folder, "src")
    catch_up(task)
    assert list_segments(task.folder, "src") == before
    status = read_status(task.folder)
    assert (status.state, status.offset) == ("caught up", mysql80.position()[1])


def test_an_archive_is_relayed_like_a_server(mysql80: Server, tmp_path: Path) -> None:
    """Complete binlog files in a folder become the same segments; later files continue them."""
    database = mysql80.fresh_database("archive")
    archive = tmp_path / "archive"
    archive.mkdir()
    for _ in range(3):
        insert(mysql80, database, rows=30)
        mysql80.execute("FLUSH BINARY LOGS")
    closed = mysql80.binlog_files()[-4:-1]
    task = RelayTask("src", str(tmp_path / "relay"), binlog_dir=str(archive), until_caught_up=True)
    for place in closed:
        (archive / place.name).write_bytes(place.read_bytes())
        catch_up(task)
    for place in closed:
        assert b"\xfebin" + relayed_bytes(task, place.name) == place.read_bytes()
    catch_up(task)
    assert read_status(task.folder).state == "caught up"


def test_a_damaged_archive_stops_the_relay(mysql80: Server, tmp_path: Path) -> None:
    """A flipped bit, a truncated end and a missing file are each reported with file and offset."""
    insert(mysql80, mysql80.fresh_database("damage"))
    mysql80.execute("FLUSH BINARY LOGS")
    place = mysql80.binlog_files()[-2]
    data = bytearray(place.read_bytes())
    flipped = bytes([*data[:-60], data[-60] ^ 1, *data[-59:]])
    for name, content, message in [
        ("flipped", flipped, "checksum|bytes are missing"),
        ("torn", bytes(data[:-20]), "ends inside an event"),
    ]:
        archive = tmp_path / name
        archive.mkdir()
        (archive / place.name).write_bytes(content)
        task = RelayTask("src", str(tmp_path / f"{name}.relay"), binlog_dir=str(archive), until_caught_up=True)
        with pytest.raises(CorruptBinlog, match=message) as caught:
            catch_up(task)
        assert place.name in str(caught.value)
    archive = tmp_path / "missing"
    archive.mkdir()
    for number in ("binlog.000001", "binlog.000003"):
        (archive / number).write_bytes(data)
    task = RelayTask("src", str(tmp_path / "missing.relay"), binlog_dir=str(archive), until_caught_up=True)
    with pytest.raises(CorruptBinlog, match=r"binlog\.000001 is followed by binlog\.000003"):
        catch_up(task)
