"""The fault matrix' columns: what fails at a point, and how a task must end then. A restart always succeeds."""

import contextlib
import io
import signal
from collections.abc import Callable
from concurrent.futures import Future

from dmdelta.cli.main import execute
from dmdelta.errors import DmdeltaError, Fenced, HeldByCommand
from tests.crash.bench import END_SECONDS, Bench
from tests.crash.rows import MAINTAIN, MEANWHILE

STOP_SECONDS = 40.0
"""After a stop a run must end within this time, whatever hangs."""


def killed(bench: Bench) -> None:
    """The process that passes the point dies: the run restarts the relay's, an operator the runner's."""
    bench.provoke("kill")
    if not bench.row.relay:
        command, *arguments = bench.row.arguments
        with bench.task.process(*arguments, command=command) as process:
            code = process.wait(END_SECONDS)
            # A Spark worker dies alone: its driver reports it and ends.
            assert code != 0 if bench.row.executors else code == -signal.SIGKILL, process.log()
    bench.heal()


def error_once(bench: Bench) -> None:
    """The store, the source or the target fails once: the run continues by itself, or ends with the reason."""
    _fails(bench, f"error:{bench.row.error}", "injected")


def disk_full(bench: Bench) -> None:
    """There is no space for what is written there."""
    _fails(bench, "error:ENOSPC", "No space left on device")


def no_permission(bench: Bench) -> None:
    """A folder is no longer writable."""
    _fails(bench, "error:EACCES", "Permission denied")


def _fails(bench: Bench, fault: str, says: str) -> None:
    bench.provoke(fault)
    code, said = bench.attempt()
    # Spark logs the errors of its workers; dmdelta's own follows.
    own = said[said.rfind("\nerror: ") :] if bench.row.executors else said
    assert "Traceback" not in own, said
    if code:
        assert says in said, said
        assert "hint:" in said, said
    bench.heal()


def hung(bench: Bench) -> None:
    """The point hangs until a stop has waited long enough; when it is released, another run is active."""
    bench.provoke("hang")
    if bench.row.executors:
        _hung_process(bench)
        return
    with bench.hanging() as (stop, ended):
        stop.request()
        if bench.row.arguments == MAINTAIN:
            code, said = bench.attempt()
            assert code == HeldByCommand.exit_code, said
            assert "another command is working" in said, said
        else:
            _assert_ends(ended, STOP_SECONDS)
            bench.heal()
    bench.heal()


def _hung_process(bench: Bench) -> None:
    with bench.task.process(*bench.row.arguments[1:]) as process:
        bench.wait_hanging(process)
        process.terminate()
        process.wait(STOP_SECONDS)
        bench.heal()
        bench.task.hangs.unlink()
    bench.heal()


def second_runner(bench: Bench) -> None:
    """While one hangs, another machine does its work and continues; if their work overlaps, one of them is fenced."""
    bench.provoke("hang")
    other = bench.task.elsewhere()
    if bench.row.executors:
        with bench.task.process(*bench.row.arguments[1:]) as process:
            bench.wait_hanging(process)
            bench.write(MEANWHILE)
            other.catch_up()
            bench.task.hangs.unlink()
            assert process.wait(END_SECONDS) in (0, Fenced.exit_code), process.log()
    else:
        with bench.hanging() as (_, ended):
            if bench.row.arguments != MAINTAIN:
                bench.write(MEANWHILE)
            said = io.StringIO()
            with other.environment(), contextlib.redirect_stderr(said):
                code = execute([bench.row.arguments[0], str(other.write_spec()), *bench.row.arguments[1:]])
            assert code in (0, Fenced.exit_code), said.getvalue()
            bench.task.hangs.unlink()
            _assert_ends(ended, END_SECONDS)
    bench.heal()


def _assert_ends(run: "Future[object]", seconds: float) -> None:
    """By itself, or with one of dmdelta's errors and a hint."""
    error = run.exception(seconds)
    assert error is None or (isinstance(error, DmdeltaError) and error.hint), error


FAULTS: dict[str, Callable[[Bench], None]] = {
    "kill": killed,
    "error": error_once,
    "hang": hung,
    "second runner": second_runner,
    "disk full": disk_full,
    "no permission": no_permission,
}


def play(bench: Bench, fault: str) -> None:
    """One cell.

    Raises:
        AssertionError: the point was not passed, or the result is not exactly the source.
    """
    bench.begin()
    FAULTS[fault](bench)
    assert bench.met, f"nobody passed {bench.row.point.value}"
    bench.look()
