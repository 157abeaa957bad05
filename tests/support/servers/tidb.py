"""TiDB as a target: one SQL node with its embedded store, built once from the Go main package in `tests/support/tidb`.

`python -m tests.support.servers.tidb` builds it below the servers' folder (minutes), with the machine's Go or Debian's
and the modules in go.sum from Go's module proxy. Exit code 75: Go or a module cannot be fetched.
"""

import hashlib
import os
import re
import shutil
import signal
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
from tests.support.servers.fetch import InstallError, fetch_debian
from tests.support.servers.install import locked, servers_folder
from tests.support.servers.kinds import DebianPackages
from tests.support.servers.server import StartError, free_port

PACKAGE = Path(__file__).resolve().parents[1] / "tidb"
SOURCES = ("go.mod", "go.sum", "main.go")
GO = DebianPackages("trixie", ("golang-1.24-go", "golang-1.24-src"), closure=False)
OLDEST_GO = (1, 23)
"""The first Go version whose linker supports `-checklinkname`."""
START_SECONDS = 120.0
BUILD_SECONDS = 3600
NOT_FETCHED = 75


class FetchError(InstallError):
    """Go or TiDB's modules cannot be fetched on this machine."""


def install_tidb() -> Path:
    """The program, built at the first call and after a change of its sources. Safe with concurrent processes.

    Raises:
        FetchError: Go or the modules cannot be fetched. InstallError: TiDB does not build.
    """
    folder = servers_folder()
    folder.mkdir(parents=True, exist_ok=True)
    program, recipe = folder / "tidb" / "tidb-server", folder / "tidb" / "recipe"
    sources = hashlib.sha256(b"".join((PACKAGE / name).read_bytes() for name in SOURCES)).hexdigest()
    with locked(folder / "tidb.lock"):
        if not recipe.exists() or recipe.read_text() != sources:
            with tempfile.TemporaryDirectory(prefix=".tidb-", dir=folder) as scratch:
                fresh = _build(_go(Path(scratch)), Path(scratch))
                program.parent.mkdir(exist_ok=True)
                fresh.rename(program)
                recipe.write_text(sources)
    return program


def _go(scratch: Path) -> str:
    """The machine's Go if it is new enough, else Debian's, unpacked below `scratch`."""
    own = shutil.which("go")
    if own is not None:
        said = subprocess.run([own, "env", "GOVERSION"], capture_output=True, text=True, check=False).stdout
        if tuple(map(int, re.findall(r"\d+", said)[:2])) >= OLDEST_GO:
            return own
    target = scratch / "go"
    target.mkdir()
    try:
        fetch_debian(GO, scratch, target)
    except InstallError as error:
        oldest = ".".join(map(str, OLDEST_GO))
        raise FetchError(
            f"TiDB is built with Go: install {oldest} or newer, as Debian's cannot be had: {error}"
        ) from error
    return str(target / "usr/lib/go-1.24/bin/go")


def _build(go: str, scratch: Path) -> Path:
    # TiDB's version is not in the public checksum database, but in go.sum.
    environment = {**os.environ, "GONOSUMDB": "github.com/pingcap/*", "GOTOOLCHAIN": "local"}
    program = scratch / "tidb-server"

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [go, *arguments],
            cwd=PACKAGE,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=BUILD_SECONDS,
        )
        return "" if done.returncode == 0 else done.stderr[-800:] or f"exit {done.returncode}"

    if failed := run("mod", "download"):
        raise FetchError(f"TiDB's modules cannot be downloaded: {failed}")
    if failed := run("build", "-ldflags=-s -w -checklinkname=0", "-o", str(program), "."):
        raise InstallError(f"TiDB does not build: {failed}")
    return program


class TidbServer(Asking):
    """A running TiDB, with the part of `Server` that a target needs."""

    host = "127.0.0.1"
    name = flavor = "tidb"
    password = ""

    def __init__(self, port: int, pid: int) -> None:
        self.port = port
        self.pid = pid

    def connect(self, database: str | None = None, **settings: Any) -> "Connection[Any]":
        """The administrator's connection."""
        settings = {"autocommit": True, "charset": "utf8mb4", "database": database, **settings}
        return pymysql.connect(host=self.host, port=self.port, user="root", **settings)


@contextmanager
def running_tidb() -> Iterator[TidbServer]:
    """Run TiDB in a `with` block, on its own data; it stops when this process ends for any reason.

    Raises:
        InstallError: it cannot be built. StartError: it does not start.
    """
    program = install_tidb()
    folder = Path(tempfile.mkdtemp(prefix="dmd-tidb-", dir="/tmp"))
    port = free_port()
    guard = str(Path(__file__).with_name("guard.py"))
    options = [f"--port={port}", f"--path={folder / 'data'}", f"--log={folder / 'log'}"]
    process = subprocess.Popen(
        [sys.executable, "-S", "-E", guard, str(os.getpid()), str(folder), str(program), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=folder,  # it writes its slow query log to the current folder
        start_new_session=True,
    )
    with process:
        assert process.stdout is not None
        server = TidbServer(port, int(process.stdout.readline()))
        try:
            _wait(server, process, folder / "log")
            yield server
        finally:
            if process.poll() is None:
                os.kill(server.pid, signal.SIGKILL)
            process.wait()
            shutil.rmtree(folder, ignore_errors=True)


def _wait(server: TidbServer, process: "subprocess.Popen[str]", log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            server.connect().close()
        except pymysql.err.OperationalError:
            time.sleep(0.2)
        else:
            return
    said = log.read_text(errors="replace")[-1500:] if log.exists() else "(no log)"
    raise StartError(f"TiDB did not start:\n{said}")


def main() -> int:
    # exit cleanly, so that a partial build is removed
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        print(install_tidb())
    except InstallError as error:
        print(error, file=sys.stderr)
        return NOT_FETCHED if isinstance(error, FetchError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
