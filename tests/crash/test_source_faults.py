"""Faults of the source at each moment of its stream: every cell ends with silver = source, bronze once."""

import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from dmdelta.cli.main import execute
from dmdelta.errors import LakehouseError, SourceError
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.segments import list_segments
from dmdelta.source.relay.dump import ARTIFICIAL, HEARTBEAT_SECONDS, SILENT_HEARTBEATS
from tests.crash.rows import BESIDE, INSERT, TABLES, UPDATE
from tests.support.check import assert_exactly_once, assert_silver_equals_source
from tests.support.forgetting import forget_history
from tests.support.oracle import bronze_vs_transactions, cut_within_transactions
from tests.support.proxy import Event, Link, Meddle, Once, Proxy
from tests.support.relaying import purged_to_the_newest, wait_until
from tests.support.replication import follow, promote
from tests.support.servers import Server, running
from tests.support.task import Task

ROTATE, XID, GTID, UPDATE_ROWS = 4, 16, 33, 31
MOMENTS: dict[str, int] = {
    "between transactions": GTID,
    "mid event": UPDATE_ROWS,
    "mid transaction": XID,
    "at rotation": ROTATE,
}
"""The type of the event that the fault replaces; with `mid event` the first half is still sent."""
WRITES = (INSERT, *BESIDE, "FLUSH BINARY LOGS", UPDATE, "UPDATE pairs SET v = v + 1")
SMOKE, SMOKE_MOMENT = "cut", "mid transaction"
"""The cell of every test run."""


def cut(link: Link, _event: Event, _server: Server) -> None:
    link.cut()


def slow(link: Link, event: Event, _server: Server) -> None:
    link.send_slowly(event.payload)


def frozen(link: Link, _event: Event, _server: Server) -> None:
    """The silence is longer than a relay waits for a heartbeat."""
    wait_until(lambda: link.client.fileno() < 0, 2 * SILENT_HEARTBEATS * HEARTBEAT_SECONDS)


def restarted(link: Link, _event: Event, server: Server) -> None:
    server.restart()
    link.cut()


def killed(link: Link, _event: Event, server: Server) -> None:
    server.kill()
    server.start()
    link.cut()


def damaged(link: Link, event: Event, _server: Server) -> None:
    """One bit of an event is flipped; its checksum reveals it."""
    link.send(event.payload[:-6] + bytes([event.payload[-6] ^ 1]) + event.payload[-5:])


def rotated(link: Link, event: Event, _server: Server) -> None:
    """The current file is announced once more, as servers do."""
    link.send(_fake_rotate(_server.position()[0]))
    link.send(event.payload)


def rotated_back(link: Link, event: Event, _server: Server) -> None:
    """Another file is announced out of turn."""
    link.send(_fake_rotate("binlog.000001"))
    link.send(event.payload)


HALF = {cut, restarted, killed, frozen}
"""Faults that can end an event in its middle."""
FAULTS: dict[str, Callable[[Link, Event, Server], None]] = {
    "cut": cut,
    "slow": slow,
    "frozen": frozen,
    "restarted": restarted,
    "killed": killed,
    "checksum": damaged,
    "fake rotate": rotated,
    "fake rotate back": rotated_back,
}


def _fake_rotate(file: str) -> bytes:
    """An artificial rotate event as its packet's payload: MySQL, "Binlog Event", "ROTATE_EVENT"."""
    body = (4).to_bytes(8, "little") + file.encode()
    size = 19 + len(body) + 4
    header = bytes(4) + bytes([ROTATE]) + (1).to_bytes(4, "little") + size.to_bytes(4, "little")
    event = header + bytes(4) + ARTIFICIAL.to_bytes(2, "little") + body
    return b"\0" + event + zlib.crc32(event).to_bytes(4, "little")


def _wanted(kind: int) -> Callable[[Event], bool]:
    return lambda event: event.kind == kind and not event.artificial


def _acting(act: Callable[[Link, Event, Server], None], moment: str, server: Server) -> Meddle:
    def meddle(link: Link, event: Event) -> bool:
        if moment == "mid event" and act in HALF:
            link.send_half(event.payload)
        act(link, event, server)
        return True

    return meddle


def _cells():
    """Each fault with all moments; the smoke test's cell is a separate test."""
    yield pytest.param(SMOKE, (SMOKE_MOMENT,), id=f"{SMOKE}, {SMOKE_MOMENT}")
    for fault in FAULTS:
        moments = tuple(moment for moment in MOMENTS if (fault, moment) != (SMOKE, SMOKE_MOMENT))
        yield pytest.param(fault, moments, id=fault, marks=pytest.mark.long)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("fault", "moments"), [*_cells()])
def test_a_fault_in_the_stream_loses_and_repeats_nothing(fault, moments, spark, tmp_path, matrix):
    """The run recovers by itself, or ends with an error and the next step, and the next start recovers."""
    with running("mysql80") as server, Proxy(server) as proxy:
        task = Task(tmp_path, server, server.fresh_database("faults"), port=proxy.port)
        server.execute(*TABLES, database=task.database)
        task.catch_up()
        for number, moment in enumerate(moments, 1):
            code = play(spark, task, proxy, fault, moment, number * 1000)
            matrix[f"source, {fault}", moment] = "healed itself" if code == 0 else "by a start"


def play(spark, task: Task, proxy: Proxy, fault: str, moment: str, number: int) -> int:
    """One cell: a task meets a fault in the stream of some writes, and a restart recovers. The run's exit code.

    Raises:
        AssertionError: the event did not come, or the result is not exactly the source.
    """
    write(task, number)
    acting = _acting(FAULTS[fault], moment, task.server)
    proxy.meddle = meddle = Once(_wanted(MOMENTS[moment]), acting)
    code = attempt(task)
    assert meddle.done.is_set(), f"no event of type {MOMENTS[moment]} came"
    assert code in (0, SourceError.exit_code)
    task.catch_up()
    assert_exactly_once(spark, task, ("", 0))
    cut = cut_within_transactions(task.server, list_segments(task.relay / task.source_id, task.source_id))
    assert not cut, f"segments end within a transaction: {cut}"
    return code


def attempt(task: Task, *arguments: str) -> int:
    """`dmdelta run` until it has caught up: its exit code."""
    with task.environment():
        return execute(["run", str(task.write_spec()), "--until-caught-up", *arguments])


def begun(server: Server, folder: Path, **more) -> Task:
    """A task that has caught up."""
    task = Task(folder, server, server.fresh_database("faults"), **more)
    server.execute(*TABLES, database=task.database)
    write(task, 1000)
    task.catch_up()
    return task


def write(task: Task, number: int) -> None:
    task.server.execute(*(text.replace("{n}", str(number)) for text in WRITES), database=task.database)


@pytest.mark.long
def test_a_reset_log_is_refused_until_the_task_restarts(spark, tmp_path, capsys):
    """RESET MASTER: the same file names are another log. With --remove-meta the task continues in it."""
    with running("mysql80") as server:
        task = begun(server, tmp_path)
        server.execute("RESET MASTER")
        write(task, 2000)
        assert attempt(task) == SourceError.exit_code
        assert "--remove-meta" in capsys.readouterr().err
        assert attempt(task, "--remove-meta") == 0
        assert_silver_equals_source(spark, task)


@pytest.mark.long
def test_a_purged_unread_log_requires_a_new_load(spark, tmp_path, capsys):
    """The log has a gap: the error reports it, and with --remove-meta the task loads its tables again."""
    with running("mysql80") as server:
        task = begun(server, tmp_path, mode="all")
        write(task, 2000)
        server.execute("FLUSH BINARY LOGS")
        wait_until(lambda: purged_to_the_newest(server))
        write(task, 3000)
        assert attempt(task) == SourceError.exit_code
        assert "--remove-meta" in capsys.readouterr().err
        assert attempt(task, "--remove-meta") == 0
        assert_silver_equals_source(spark, task)


@pytest.mark.long
def test_bronze_that_lacks_its_position_is_refused_until_the_task_restarts(spark, tmp_path, capsys):
    """Another tool has removed bronze's commits. With --remove-meta the task loads its tables again, in a new epoch."""
    with running("mysql80") as server:
        task = begun(server, tmp_path, mode="all")
        forget_history(spark, task.root / "bronze")
        write(task, 2000)
        assert attempt(task) == LakehouseError.exit_code
        assert "--remove-meta" in capsys.readouterr().err
        assert attempt(task, "--remove-meta") == 0
        assert_silver_equals_source(spark, task)
        write(task, 3000)
        assert attempt(task) == 0
        assert_silver_equals_source(spark, task)


@pytest.mark.long
@pytest.mark.parametrize("history", ["same", "behind", "diverged"])
def test_another_server_takes_over(history, spark, tmp_path, capsys):
    """One with all landed transactions takes over. One that lacks some is refused: until it has them, or forever."""
    with running("mysql80") as old, running("mysql80", server_id="2", log_slave_updates="ON") as new:
        follow(new, old)
        task = begun(old, tmp_path)
        promote(new, old)
        if history != "same":
            write(task, 2000)
            task.catch_up()
        if history != "behind":
            new.execute("UPDATE keyed SET v = v + 100", database=task.database)
        task.server = new
        if history == "same":
            task.catch_up()
            assert not bronze_vs_transactions(new, bronze_of(task, spark), [task.database], ())
        else:
            assert attempt(task) == SourceError.exit_code
            assert "history" in capsys.readouterr().err
        if history == "behind":
            new.execute("START SLAVE")
            wait_until(lambda: new.position()[2] == old.position()[2])
            write(task, 3000)
            task.catch_up()
        if history == "diverged":
            task.server = old
            write(task, 3000)
            task.catch_up()
        assert_silver_equals_source(spark, task)


@pytest.mark.long
def test_file_numbers_grow_a_digit(spark, tmp_path):
    """binlog.999999 is followed by binlog.1000000, which sorts before it."""
    with running("mysql80") as server:
        server.execute("RESET MASTER TO 999999")
        task = begun(server, tmp_path)
        write(task, 2000)
        task.catch_up()
        assert server.position()[0] == "binlog.1000001"
        assert_exactly_once(spark, task, ("", 0))


@pytest.mark.long
def test_the_server_s_clock_is_set_back(spark, tmp_path):
    """The log's order counts, not its timestamps: a time of a week ago follows the present."""
    with running("mysql80") as server:
        task = begun(server, tmp_path)
        server.execute(
            "SET SESSION timestamp = UNIX_TIMESTAMP() - 604800",
            INSERT.replace("{n}", "5000"),
            UPDATE,
            database=task.database,
        )
        write(task, 2000)
        task.catch_up()
        assert_exactly_once(spark, task, ("", 0))


def bronze_of(task: Task, spark):
    return spark.table(Lakehouse(root=str(task.root)).bronze)
