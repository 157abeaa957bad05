"""The control socket of a running task: a Unix socket that only the task's own account can use."""

import fcntl
import os
import socketserver
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from dmdelta.config import TaskSpec
from dmdelta.engine.control.protocol import MAX_REQUEST_BYTES, AnswerLine, Command, WireError, parse_request
from dmdelta.engine.control.socket_path import control_socket, peer_user
from dmdelta.errors import ConfigError, DmdeltaError, as_ours
from dmdelta.logging import get_logger
from dmdelta.model.plain import plain

log = get_logger(__name__)
IDLE_SECONDS = 60.0
"""A connection without a request is closed after this time."""
MAX_CONNECTIONS = 32
END_SECONDS = 5.0
"""How long the end of a run waits for the answers in progress, such as that of `stop`."""


class CommandTarget(Protocol):
    """What executes the commands: `dmdelta.engine.run.commands.RunCommands`."""

    def execute(self, command: Command) -> Any:
        """Execute a command, from any thread. Returns a record, or a list of records.

        Raises:
            DmdeltaError: the command had no effect, or its outcome is an error.
        """


class _Connection(socketserver.StreamRequestHandler):
    """One client: answers its requests one after the other."""

    timeout = IDLE_SECONDS
    server: "ControlServer"

    def handle(self) -> None:
        with suppress(OSError):  # the client has gone, or is idle
            while line := self.rfile.readline(MAX_REQUEST_BYTES + 1):
                answer = self.server.answer(line)
                self.wfile.write(answer.model_dump_json().encode() + b"\n")
                if len(line) > MAX_REQUEST_BYTES:
                    return  # the rest of the line is no request


class ControlServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Serves the commands of one task. A request of another account is closed without an answer."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, path: Path, target: CommandTarget) -> None:
        super().__init__(str(path), _Connection, bind_and_activate=False)
        self._target = target
        self._free = threading.Semaphore(MAX_CONNECTIONS)
        self._idle = threading.Condition()
        self._busy = 0
        self.server_bind()
        path.chmod(0o600)  # before the socket accepts connections
        self.server_activate()

    def answer(self, line: bytes) -> AnswerLine:
        """Execute the request in a line."""
        with self._answering():
            try:
                return AnswerLine(result=plain(self._target.execute(parse_request(line))))
            except DmdeltaError as error:
                return AnswerLine(error=WireError.of(error))
            except Exception as error:  # noqa: BLE001 - a failed command does not end the task
                log.error("command failed", exc=error)  # noqa: TRY400 - it logs the traceback
                return AnswerLine(error=WireError.of(as_ours(error, "the command")))

    def verify_request(self, request: Any, client_address: Any) -> bool:  # noqa: ARG002 - socketserver's signature
        """Accept only clients of the task's own account, and root."""
        user = peer_user(request)
        if user not in (None, 0, os.geteuid()):
            log.warning("control socket refused another account", user=user)
            return False
        return self._free.acquire(blocking=False)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A broken connection needs no traceback."""

    def wait_idle(self, seconds: float) -> None:
        """Wait until all requests in progress are answered."""
        with self._idle:
            self._idle.wait_for(lambda: not self._busy, seconds)

    @contextmanager
    def _answering(self) -> Iterator[None]:
        with self._idle:
            self._busy += 1
        try:
            yield
        finally:
            with self._idle:
                self._busy -= 1
                self._idle.notify_all()


@contextmanager
def serving_commands(spec: TaskSpec, target: CommandTarget) -> Iterator[None]:
    """Serve the control socket of a task in a thread until the block ends.

    If another process of this machine already serves it, or the file system has no sockets, this run is controlled
    through dm_meta only.
    """
    path = control_socket(spec)
    with _owned(path) as owned:
        server = _open(path, target) if owned else None
        if server is None:
            yield
            return
        thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="control-socket", daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.wait_idle(END_SECONDS)
            server.shutdown()
            thread.join()
            server.server_close()
            path.unlink(missing_ok=True)


@contextmanager
def _owned(path: Path) -> Iterator[bool]:
    """Hold the lock that belongs to a socket; False if another process holds it. A killed process releases it."""
    make_folder(path.parent)
    with path.with_suffix(".lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            log.warning("control socket is not available, using dm_meta only", path=str(path), why=str(error))
            yield False
            return
        yield True


def _open(path: Path, target: CommandTarget) -> ControlServer | None:
    path.unlink(missing_ok=True)  # of a killed run: the lock proves that no process serves it
    try:
        return ControlServer(path, target)
    except OSError as error:
        log.warning("control socket is not available, using dm_meta only", path=str(path), why=str(error))
        return None


def make_folder(folder: Path) -> None:
    """Create the folder of a socket if it does not exist; only for this account in a folder such as /tmp.

    Raises:
        ConfigError: it exists there and belongs to another account.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    is_shared = folder.parent.stat().st_mode & stat.S_ISVTX
    folder.mkdir(mode=0o700 if is_shared else 0o777, exist_ok=True)
    if is_shared and folder.stat().st_uid not in (os.geteuid(), 0):
        raise ConfigError(f"{folder} belongs to another account", hint="remove it, or set TMPDIR to a folder of yours")
