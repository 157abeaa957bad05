"""The relay: writes one source's log to disk as segments, in its own process.

`python -m dmdelta.source.relay` reads a `RelayTask` as one line of JSON from stdin (it contains a password) and runs
until SIGTERM, the end of stdin (the parent has ended) or, if the task says so, until it has caught up.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Callable

from dmdelta.errors import DmdeltaError, SourceUnavailable, as_ours, to_wire
from dmdelta.logging import configure, get_logger
from dmdelta.source.relay.archive import ArchiveSession
from dmdelta.source.relay.relay_dir import locked
from dmdelta.source.relay.relay_task import RelayTask, StatusFile
from dmdelta.source.relay.session import ServerSession, Stop

log = get_logger("dmdelta.source.relay")  # __name__ is "__main__", which `configure` does not reach

_NAP = 0.2


def run_relay(task: RelayTask, stop: Stop) -> None:
    """Relay until `stop()` is true, or until caught up if the task says so; then all whole transactions are on disk.

    Raises:
        Fenced: another relay holds the folder.
        SourceUnavailable: the server did not answer for as long as `task.retry` allows.
        PositionLost, CorruptBinlog, SourceError: as the source says.
    """
    with locked(task.folder):
        status = StatusFile(task.folder)
        status.write()
        try:
            caught_up = _relay(task, stop, status)
        except DmdeltaError as error:
            status.fail(error)
            raise
        except Exception as error:
            failure = as_ours(error, f"the relay of {task.source_id}")
            status.fail(failure)
            raise failure from error
        status.update(state="caught up" if caught_up else "stopped")
        log.info("relay ended", source=task.source_id, file=status.status.binlog_file, offset=status.status.offset)


def _relay(task: RelayTask, stop: Stop, status: StatusFile) -> bool:
    if task.endpoint is None:
        return ArchiveSession(task, stop, status).run()
    session = ServerSession(task, task.endpoint, stop, status)
    failures = 0
    while not stop():
        try:
            return session.run()
        except SourceUnavailable as error:
            failures = 1 if session.progressed else failures + 1
            if failures >= task.retry.attempts:
                raise
            delay = task.retry.delay(failures)
            log.warning("source lost, reconnecting", source=task.source_id, in_s=round(delay, 2), why=error.message)
            status.update(retries=failures)
            _sleep(delay, stop)
    return False


def _sleep(seconds: float, stop: Stop) -> None:
    end = time.monotonic() + seconds
    while not stop() and time.monotonic() < end:
        time.sleep(min(_NAP, max(0.0, end - time.monotonic())))


def _stop_of_process() -> Callable[[], bool]:
    """True after SIGTERM or SIGINT, or when the parent's end of stdin is closed."""
    received: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda signum, _frame: received.append(signum))

    def stop() -> bool:
        if not received and select.select([0], [], [], 0)[0] and not os.read(0, 4096):
            received.append(0)
        return bool(received)

    return stop


def main() -> int:
    configure()
    stop = _stop_of_process()
    line = b""
    while not line.endswith(b"\n"):
        # Unbuffered: `stop` must see what follows the line.
        byte = os.read(0, 65536)
        if not byte:
            return 0
        line += byte
    try:
        run_relay(RelayTask.from_json(line.decode()), stop)
    except DmdeltaError as error:
        print(to_wire(error), flush=True)  # noqa: T201 (the parent reads it)
        log.error("relay failed", exc=error.__cause__, why=error.message, hint=error.hint)  # noqa: TRY400 (our logger)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
