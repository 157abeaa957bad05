"""The relay: writes one source's log to disk as segments, in its own process.

`python -m dmdelta.source.relay` reads a `RelayTask` as one line of JSON from stdin (it contains a password) and runs
until SIGTERM, the end of stdin (the parent has ended) or, if the task says so, until it has caught up. Each further
byte asks it to publish the transactions that it has.
"""

import os
import select
import signal
import sys
import time
from types import FrameType

from dmdelta.errors import DmdeltaError, SourceUnavailable, as_ours, to_wire
from dmdelta.logging import configure, get_logger
from dmdelta.source.relay.archive import ArchiveSession
from dmdelta.source.relay.relay_dir import locked
from dmdelta.source.relay.relay_task import RelayTask, StatusFile
from dmdelta.source.relay.session import Flag, RelayRequests, ServerSession

log = get_logger("dmdelta.source.relay")  # __name__ is "__main__", which `configure` does not reach

_NAP = 0.2


def run_relay(task: RelayTask, requests: RelayRequests) -> None:
    """Relay until a stop is requested, or until caught up if the task says so; then all whole transactions are on disk.

    Raises:
        Fenced: another relay holds the folder.
        SourceUnavailable: the server did not answer for as long as `task.retry` allows.
        PositionLost, CorruptBinlog, SourceError: as the source says.
    """
    with locked(task.folder):
        status = StatusFile(task.folder)
        status.write()
        try:
            caught_up = _relay(task, requests, status)
        except DmdeltaError as error:
            status.fail(error)
            raise
        except Exception as error:
            failure = as_ours(error, f"the relay of {task.source_id}")
            status.fail(failure)
            raise failure from error
        status.update(state="caught up" if caught_up else "stopped")
        log.info("relay ended", source=task.source_id, file=status.status.binlog_file, offset=status.status.offset)


def _relay(task: RelayTask, requests: RelayRequests, status: StatusFile) -> bool:
    if task.endpoint is None:
        return ArchiveSession(task, requests.stop, status).run()
    session = ServerSession(task, task.endpoint, requests, status)
    failures = 0
    while not requests.stop():
        try:
            return session.run()
        except SourceUnavailable as error:
            failures = 1 if session.progressed else failures + 1
            if failures >= task.retry.attempts:
                raise
            delay = task.retry.delay(failures)
            log.warning("source lost, reconnecting", source=task.source_id, in_s=round(delay, 2), why=error.message)
            status.update(retries=failures)
            _sleep(delay, requests.stop)
    return False


def _sleep(seconds: float, stop: Flag) -> None:
    end = time.monotonic() + seconds
    while not stop() and time.monotonic() < end:
        time.sleep(min(_NAP, max(0.0, end - time.monotonic())))


class _Parent:
    """The requests of the parent process: signals, and what it writes to stdin after the task."""

    def __init__(self) -> None:
        self._stopped = self._publish = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, _signum: int, _frame: FrameType | None) -> None:
        self._stopped = True

    def _read(self) -> None:
        if not self._stopped and select.select([0], [], [], 0)[0]:
            if os.read(0, 4096):
                self._publish = True
            else:
                self._stopped = True

    def stop(self) -> bool:
        """Whether it asks to stop, or has ended."""
        self._read()
        return self._stopped

    def publish(self) -> bool:
        """Whether it has asked to publish since the last call."""
        self._read()
        asked, self._publish = self._publish, False
        return asked


def main() -> int:
    configure()
    parent = _Parent()
    line = b""
    while not line.endswith(b"\n"):
        # Unbuffered: what follows the line are requests.
        byte = os.read(0, 65536)
        if not byte:
            return 0
        line += byte
    try:
        run_relay(RelayTask.from_json(line.decode()), RelayRequests(parent.stop, parent.publish))
    except DmdeltaError as error:
        print(to_wire(error), flush=True)  # noqa: T201 (the parent reads it)
        log.error("relay failed", exc=error.__cause__, why=error.message, hint=error.hint)  # noqa: TRY400 (our logger)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
