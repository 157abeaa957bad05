"""A running server: started on a free port from a copy of the template, stopped by its process id."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymysql
from pymysql.connections import Connection

from tests.support.servers.asking import Asking
from tests.support.servers.install import Installation, install
from tests.support.servers.kinds import COMMON, Options

START_SECONDS = 60.0
STOP_SECONDS = 30.0
PRIVILEGES = "SELECT, RELOAD, LOCK TABLES, REPLICATION SLAVE, REPLICATION CLIENT"
"""The privileges that dmdelta's documentation lists."""


class StartError(RuntimeError):
    """A server did not start; the message ends with its error log."""


def free_port() -> int:
    """A TCP port that is currently free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server(Asking):
    """One server with its own data folder.

    Attributes:
        user, password: the account that dmdelta logs in with: only the documented privileges.
        port, socket: where it listens.
        pid: the process id of the server, 0 while it is stopped.
    """

    host = "127.0.0.1"
    user = "dmdelta"

    def __init__(self, installation: Installation, folder: Path, options: Options, port: int | None) -> None:
        self.kind = installation.kind
        self.name = installation.kind.name
        self.flavor = installation.kind.flavor
        self.folder = folder
        self.datadir = folder / "data"
        self.port = port or free_port()
        self.socket = str(folder / "s.sock")
        self.password = secrets.token_urlsafe(12)
        self.options: Options = {
            **COMMON,
            **installation.kind.options,
            "log_bin": str(self.datadir / "binlog"),
            **options,
        }
        self.pid = 0
        self._installation = installation
        self._guard: subprocess.Popen[str] | None = None
        shutil.copytree(installation.template, self.datadir, symlinks=True)

    @property
    def version(self) -> str:
        """The version that the server reports: `8.0.31`, `10.11.18-MariaDB-…`."""
        return str(self.query("SELECT VERSION()")[0][0])

    @property
    def error_log(self) -> Path:
        return self.folder / "error.log"

    def start(self, **overrides: str | None) -> None:
        """Start and wait until it accepts connections; `overrides` change server options from now on.

        Raises:
            StartError: the program ended, or did not accept connections within a minute.
        """
        self.options.update(overrides)
        places: Options = {"port": str(self.port), "socket": self.socket, "pid_file": str(self.folder / "pid")}
        settings = {**self.options, **places, "log_error": str(self.error_log), "secure_file_priv": str(self.folder)}
        command = self._installation.command(self.datadir)
        command += [
            f"--{name.replace('_', '-')}" + (f"={value}" if value else "")
            for name, value in settings.items()
            if value is not None
        ]
        guard = str(Path(__file__).with_name("guard.py"))
        self._guard = subprocess.Popen(
            [sys.executable, "-S", "-E", guard, str(os.getpid()), str(self.folder), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=self._installation.environment,
            start_new_session=True,
        )
        assert self._guard.stdout is not None
        self.pid = int(self._guard.stdout.readline())
        self._wait_until_it_answers()

    def stop(self) -> None:
        """Shut down cleanly."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it, as in a power failure."""
        self._end(signal.SIGKILL)

    def restart(self, **overrides: str | None) -> None:
        """Shut down cleanly, and start again on the same port and data."""
        self.stop()
        self.start(**overrides)

    def connect(self, user: str = "root", database: str | None = None, **settings: Any) -> "Connection[Any]":
        """A PyMySQL connection: the administrator's over the socket, `server.user`'s over TCP. Autocommit is on."""
        settings = {"autocommit": True, "charset": "utf8mb4", "database": database, **settings}
        if user == "root":
            return pymysql.connect(unix_socket=self.socket, user="root", **settings)
        if user == self.user:
            settings.setdefault("password", self.password)
        return pymysql.connect(host=self.host, port=self.port, user=user, **settings)

    def position(self) -> tuple[str, int, str]:
        """The end of the binlog: file, offset, GTID set (MariaDB: its current position)."""
        newer = self.flavor == "mysql" and int(self.version.split(".")[0]) >= 9
        row = self.query("SHOW BINARY LOG STATUS" if newer else "SHOW MASTER STATUS")[0]
        gtids = self.query("SELECT @@gtid_binlog_pos")[0][0] if self.flavor == "mariadb" else row[4].replace("\n", "")
        return str(row[0]), int(row[1]), str(gtids)

    def binlog_files(self) -> list[Path]:
        """The binlog files on disk, oldest first."""
        return [self.datadir / str(row[0]) for row in self.query("SHOW BINARY LOGS")]

    def _end(self, how: signal.Signals) -> None:
        if self._guard is None:
            return
        if self._guard.poll() is None:
            os.kill(self.pid, how)
        try:
            self._guard.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.kill(self.pid, signal.SIGKILL)
            self._guard.wait(STOP_SECONDS)
        for pipe in (self._guard.stdin, self._guard.stdout):
            assert pipe is not None
            pipe.close()
        self._guard = None
        self.pid = 0

    def _wait_until_it_answers(self) -> None:
        assert self._guard is not None
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if self._listens():
                self.connect().close()
                return
            if self._guard.poll() is not None:
                break
            time.sleep(0.05)
        self._end(signal.SIGKILL)
        log = self.error_log.read_text(errors="replace")[-1500:] if self.error_log.exists() else "(no error log)"
        raise StartError(f"{self.name} did not start on port {self.port}:\n{log}")

    def _listens(self) -> bool:
        # A plain socket first: PyMySQL leaves its socket open when the server refuses.
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(self.socket)
            except OSError:
                return False
        return True

    def create_account(self) -> None:
        """Create `server.user` without logging it."""
        self.execute(
            "SET SESSION sql_log_bin = 0",
            f"CREATE USER '{self.user}'@'%' IDENTIFIED BY '{self.password}'",
            f"GRANT {PRIVILEGES} ON *.* TO '{self.user}'@'%'",
        )


@contextmanager
def running(name: str, *, port: int | None = None, **overrides: str | None) -> Iterator[Server]:
    """Run the server `name` in a `with` block, on its own data.

    `overrides` are server options: `binlog_row_image="MINIMAL"`; None drops an option, an empty text is a bare flag.

    Raises:
        InstallError: it cannot be installed.
        StartError: it does not start.
    """
    installation = install(name)
    # A short path: a socket's path is limited to 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="dmd-", dir="/tmp"))
    server = Server(installation, folder, dict(overrides), port)
    try:
        server.start()
        server.create_account()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)
