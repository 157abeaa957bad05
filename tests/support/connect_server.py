"""A Spark Connect server on this machine, for the Spark Connect lane.

`python -m tests.support.connect_server COMMAND…` starts one, runs the command with SPARK_REMOTE set, and then stops
the server. Its JVM has the confs of a local dmdelta session; its tables, its Python and its code are this machine's.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyspark

from dmdelta.lakehouse.session import SessionSettings, local_confs
from tests.support.jvm import JVM_OPTIONS

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
    child = subprocess.Popen(_command(settings, port), env=_environment(python), stdin=subprocess.DEVNULL)
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


def _command(settings: SessionSettings, port: int) -> list[str]:
    confs = {
        **local_confs(settings),
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
    own = {"PYSPARK_PYTHON": python or sys.executable, "JDK_JAVA_OPTIONS": JVM_OPTIONS}
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
    """Run a command with a new server; its exit code."""
    with running_connect_server(settings, python) as remote:
        return subprocess.run(command, env={**os.environ, "SPARK_REMOTE": remote}, check=False).returncode


def main(command: Sequence[str]) -> int:
    """Run a command with a server on this machine; its exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the server stops with this process
    return run_beside(SessionSettings("local[2]", "3g", 2), command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
