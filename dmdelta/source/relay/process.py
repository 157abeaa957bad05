"""The relay process as the engine sees it: start it, monitor it, stop it."""

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import dmdelta
from dmdelta.errors import DmdeltaError, StageFailed, from_wire
from dmdelta.source.relay.relay_task import RelayStatus, RelayTask, read_status

STOP_SECONDS = 8.0
"""After that the relay is killed, which loses nothing."""
_POLL_SECONDS = 0.05


def start_relay(task: RelayTask) -> "RelayProcess":
    """Start a relay. It ends with this process at the latest; it logs to this process's stderr."""
    return WaitingRelay().begin(task)


class WaitingRelay:
    """A relay process that has loaded its code and waits for its task: `begin` or `dismiss` it."""

    def __init__(self) -> None:
        root = str(Path(dmdelta.__file__).resolve().parents[1])
        path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
        self._child = subprocess.Popen(
            [sys.executable, "-m", "dmdelta.source.relay"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,  # at most one line, at its end: the reason for a failure
            env={**os.environ, "PYTHONPATH": path},
            # The parent decides whether to forward a Ctrl-C at the terminal.
            start_new_session=True,
        )

    def begin(self, task: RelayTask) -> "RelayProcess":
        """Send it its task."""
        child = self._child
        assert child.stdin is not None
        with suppress(BrokenPipeError):  # it has already ended: see `error`
            child.stdin.write(task.to_json().encode() + b"\n")
            child.stdin.flush()
        return RelayProcess(task, child)

    def dismiss(self) -> None:
        """End it before it has received a task."""
        self._child.kill()
        self._child.communicate()


class RelayProcess:
    """A running relay. The end of a `with` block stops it."""

    def __init__(self, task: RelayTask, child: "subprocess.Popen[bytes]") -> None:
        self._task = task
        self._child = child
        self._output = ""
        self._stops = False

    def __enter__(self) -> "RelayProcess":  # noqa: PYI034 (Self needs Python 3.11)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        return self._child.pid

    def poll(self) -> bool:
        """Whether it is still running."""
        return self._child.poll() is None

    def status(self) -> RelayStatus | None:
        """Its latest status; None before the first."""
        status = read_status(self._task.folder)
        return status if status is not None and status.pid == self.pid else None

    @property
    def caught_up(self) -> bool:
        """It has ended, and has relayed everything that its task requests."""
        if self._child.poll() != 0:
            return False
        status = self.status()
        return status is not None and status.state == "caught up"

    def error(self) -> DmdeltaError | None:
        """Why it failed; None while it runs, after `stop`, and once it has caught up."""
        code = self._child.poll()
        # After a SIGTERM that this process did not send, the relay ends normally, but the rest of the log is missing.
        if code is None or (code == 0 and (self._stops or self.caught_up)):
            return None
        self._close()
        failure = from_wire(self._output)
        if failure is not None:
            return failure
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        how = how if code else "was stopped from outside"
        return StageFailed(f"the relay of {self._task.source_id} {how}", hint="run again: no data is lost")

    def wait_ready(self, seconds: float) -> bool:
        """Wait until it holds its folder or has ended successfully; False if it failed or took too long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.status() is not None or not self.poll():
                return self.error() is None
            time.sleep(_POLL_SECONDS)
        return False

    def wait(self, seconds: float) -> bool:
        """Wait for its end; returns whether it ended in time."""
        try:
            self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        self._close()
        return True

    def publish(self) -> None:
        """Ask it to publish the transactions that it has now, instead of within a second."""
        assert self._child.stdin is not None
        # It has ended, or its pipes have been closed since.
        with suppress(BrokenPipeError, ValueError):
            os.write(self._child.stdin.fileno(), b"\n")

    def stop(self) -> None:
        """Ask it to stop at a transaction boundary and wait; kill it after STOP_SECONDS."""
        self._stops = True
        if self.poll():
            self._child.terminate()
        if not self.wait(STOP_SECONDS):
            self._child.kill()
            self._child.wait()
        self._close()

    def _close(self) -> None:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        if not self._child.stdout.closed:
            self._output = self._child.stdout.read().decode()
            self._child.stdout.close()
            with suppress(BrokenPipeError):
                self._child.stdin.close()


def wait_for(process: RelayProcess, seconds: float) -> None:
    """Wait for a successful end.

    Raises:
        DmdeltaError: the relay failed; StageFailed if it did not end in time.
    """
    end = time.monotonic() + seconds
    if not process.wait(max(0.0, end - time.monotonic())):
        raise StageFailed("the relay did not end in time", hint="run again")
    error = process.error()
    if error is not None:
        raise error
