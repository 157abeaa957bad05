"""Spark Connect servers on this machine, for the Spark Connect lane.

`python -m tests.support.connect_server COMMAND…` starts a server for each of two processes of pytest-xdist, runs the
command, and then stops the servers. Their JVMs have the confs of a local dmdelta session; their tables, their Python
and their code are this machine's. Each has a catalog of its own: test processes use the same names.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from dmdelta.lakehouse.session import SessionSettings, local_confs
from tests.support.jvm import LONG_LIVED

SERVERS = 2
REMOTES_VARIABLE = "DMDELTA_TEST_REMOTES"
"""The servers' addresses, separated by spaces."""
READY_SECONDS = 300.0
STOP_SECONDS = 20.0
_MAIN = "org.apache.spark.sql.connect.service.SparkConnectServer"
_ROOT = Path(__file__).parents[2]


@contextmanager
def running_connect_server(settings: SessionSettings, python: str | None = None) -> Iterator[str]:
    """Run a server on a free port; yields its address in the form of SPARK_REMOTE.

    Args:
        python: the executors' Python, which has dmdelta installed; None: this one, with this checkout.
    """
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="dmdelta-warehouse-") as warehouse:
        command = _command(settings, port, warehouse)
        child = subprocess.Popen(command, env=_environment(python), stdin=subprocess.DEVNULL)
        try:
            _wait(child, port)
            yield f"sc://127.0.0.1:{port}"
        finally:
            child.terminate()
            try:
                child.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def _command(settings: SessionSettings, port: int, warehouse: str) -> list[str]:
    confs = {
        **local_confs(settings),
        "spark.sql.warehouse.dir": warehouse,
        "spark.master": settings.master or "local[*]",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    named = [part for name, value in confs.items() for part in ("--conf", f"{name}={value}")]
    return [submit, "--class", _MAIN, *named, "spark-internal"]


def _environment(python: str | None) -> dict[str, str]:
    """The server's environment: Python workers use this interpreter and code, or another interpreter's packages."""
    path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH", "")]))
    own = {"PYSPARK_PYTHON": python or sys.executable, "JDK_JAVA_OPTIONS": LONG_LIVED}
    own["PYTHONPATH"] = path if python is None else ""
    return {**os.environ, **own, "SPARK_HOME": str(Path(pyspark.__file__).parent)}


def _wait(child: "subprocess.Popen[bytes]", port: int) -> None:
    end = time.monotonic() + READY_SECONDS
    while child.poll() is None and time.monotonic() < end:
        if is_listening(port):
            return
        time.sleep(0.2)
    raise RuntimeError("the Spark Connect server does not start: see its log above")


def is_listening(port: int) -> bool:
    """Whether a process listens on a port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run_beside(settings: SessionSettings, command: Sequence[str], python: str | None = None) -> int:
    """Run a command with new servers; its exit code."""
    with ExitStack() as servers:
        remotes = [servers.enter_context(running_connect_server(settings, python)) for _ in range(SERVERS)]
        variables = {"SPARK_REMOTE": remotes[0], REMOTES_VARIABLE: " ".join(remotes)}
        child = subprocess.Popen(command, env={**os.environ, **variables})
        try:
            return child.wait()
        except KeyboardInterrupt:
            child.send_signal(signal.SIGINT)  # pytest reports its failures and stops its servers
            return child.wait()


def choose_remote() -> None:
    """Make this process of pytest-xdist use a server of its own, if `run_beside` has started it."""
    remotes = os.environ.get(REMOTES_VARIABLE, "").split()
    if remotes:
        number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
        os.environ["SPARK_REMOTE"] = remotes[number % len(remotes)]


def main(command: Sequence[str]) -> int:
    """Run a command with servers on this machine; its exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the servers stop with this process
    return run_beside(SessionSettings("local[2]", "3g", 2), command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
