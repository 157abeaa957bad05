"""TiDB as a target: one SQL node over its embedded store, built once from the Go main package in `tests/support/tidb`.

`python -m tests.support.servers.tidb` builds it below the servers' folder (minutes; it needs Go and the Go module proxy).
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymysql
from pymysql.connections import Connection

from tests.support.servers.asking import Asking
from tests.support.servers.fetch import InstallError
from tests.support.servers.install import servers_folder
from tests.support.servers.server import StartError, free_port

PACKAGE = Path(__file__).resolve().parents[1] / "tidb"
START_SECONDS = 120.0
BUILD_SECONDS = 3600


def install_tidb() -> Path:
    """The program, built at the first call.

    Raises:
        InstallError: no Go, or it does not build.
    """
    program = servers_folder() / "tidb" / "tidb-server"
    if program.exists():
        return program
    if shutil.which("go") is None:
        raise InstallError("Go 1.21 or newer is needed to build TiDB")
    program.parent.mkdir(parents=True, exist_ok=True)
    fresh = program.with_suffix(".new")
    # The public checksum database does not know TiDB's version.
    environment = {**os.environ, "GONOSUMDB": "github.com/pingcap/*"}
    command = ["go", "build", "-ldflags=-s -w -checklinkname=0", "-o", str(fresh), "."]
    done = subprocess.run(
        command, cwd=PACKAGE, env=environment, capture_output=True, text=True, check=False, timeout=BUILD_SECONDS
    )
    if done.returncode != 0:
        raise InstallError(f"TiDB does not build: {done.stderr[-800:]}")
    fresh.rename(program)
    return program


class TidbServer(Asking):
    """A running TiDB: as much of `Server` as a target needs."""

    host = "127.0.0.1"
    name = flavor = "tidb"
    password = ""

    def __init__(self, port: int, process: "subprocess.Popen[bytes]") -> None:
        self.port = port
        self.process = process

    @property
    def pid(self) -> int:
        return self.process.pid

    def connect(self, database: str | None = None, **settings: Any) -> "Connection[Any]":
        """The administrator's connection."""
        settings = {"autocommit": True, "charset": "utf8mb4", "database": database, **settings}
        return pymysql.connect(host=self.host, port=self.port, user="root", **settings)


@contextmanager
def running_tidb() -> Iterator[TidbServer]:
    """Run TiDB for the length of a `with`, on data of its own.

    Raises:
        InstallError: it cannot be built. StartError: it does not start.
    """
    program = install_tidb()
    folder = Path(tempfile.mkdtemp(prefix="dmd-tidb-", dir="/tmp"))
    port = free_port()
    with (folder / "log").open("wb") as output:
        process = subprocess.Popen(
            [str(program), f"--port={port}", f"--path={folder / 'data'}"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,  # it leaves its log of slow statements where it runs
        )
    server = TidbServer(port, process)
    try:
        _wait(server, folder / "log")
        yield server
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _wait(server: TidbServer, log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and server.process.poll() is None:
        try:
            server.connect().close()
        except pymysql.err.OperationalError:
            time.sleep(0.2)
        else:
            return
    raise StartError(f"TiDB did not start:\n{log.read_text(errors='replace')[-1500:]}")


if __name__ == "__main__":
    print(install_tidb())
