"""A standalone Spark cluster of two workers on this machine, for the cluster lane.

`python -m tests.support.cluster COMMAND…` starts a master, two workers that only have dmdelta's wheel, and Spark Connect
servers as their drivers, runs the command, and then stops them. Each server has an executor on each worker. The
workers' Python is that of a virtual environment in which the wheel was installed, as `docs/clusters.md` says; the
folders are this machine's.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from dmdelta.lakehouse.session import SessionSettings
from tests.support.connect_server import READY_SECONDS, SERVERS, free_port, is_listening, run_beside

WORKERS = 2
EXECUTOR = {"spark.cores.max": str(WORKERS), "spark.executor.cores": "1", "spark.executor.memory": "2g"}
WORKER_MEMORY = f"{2500 * SERVERS}m"
STOP_SECONDS = 20.0
_ROOT = Path(__file__).parents[2]
_DEPLOY = "org.apache.spark.deploy"


def worker_python(folder: Path) -> Path:
    """The Python of a new virtual environment with dmdelta's wheel, built from this checkout, and its dependencies."""
    place, plain = folder / "workers", _plain_environment()
    subprocess.run([sys.executable, "-m", "venv", place], check=True, env=plain)
    pip = [place / "bin/pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", folder, _ROOT], check=True, env=plain)
    (wheel,) = folder.glob("dmdelta-*.whl")
    subprocess.run([*pip, "install", wheel], check=True, env=plain)
    return place / "bin/python"


def _plain_environment() -> dict[str, str]:
    """This process's environment, without the variables that point to this checkout or to a server."""
    return {name: value for name, value in os.environ.items() if name not in ("SPARK_REMOTE", "PYTHONPATH")}


@contextmanager
def running_cluster(folder: Path) -> Iterator[str]:
    """A master and its workers, one core for each server; its address as Spark's `master` takes it."""
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    with ExitStack() as daemons:
        daemons.enter_context(_daemon(folder, "master.Master", "--host", "127.0.0.1", "--port", str(port)))
        _wait_for(port)
        for number in range(WORKERS):
            size = ["--cores", str(SERVERS), "--memory", WORKER_MEMORY]
            work = ["--work-dir", str(folder / f"work-{number}"), *size]
            daemons.enter_context(_daemon(folder, "worker.Worker", "--host", "127.0.0.1", *work, address))
        yield address


@contextmanager
def _daemon(folder: Path, main: str, *arguments: str) -> Iterator[None]:
    """A process of the cluster, with its web UI on any free port."""
    home = Path(pyspark.__file__).parent
    command = [home / "bin/spark-class", f"{_DEPLOY}.{main}", "--webui-port", "0", *arguments]
    own = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOG_DIR": str(folder)}
    environment = {**_plain_environment(), **own}
    with (folder / f"{main}.log").open("ab") as log:
        child = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield
    finally:
        child.terminate()
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def _wait_for(port: int) -> None:
    end = time.monotonic() + READY_SECONDS
    while not is_listening(port):
        if time.monotonic() > end:
            raise RuntimeError("the cluster's master does not start")
        time.sleep(0.2)


def main(command: Sequence[str]) -> int:
    """Run a command with a cluster; its exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the cluster stops with this process
    with tempfile.TemporaryDirectory(prefix="dmdelta-cluster-") as place:
        folder = Path(place)
        python = worker_python(folder)
        with running_cluster(folder) as master:
            return run_beside(SessionSettings(master, "3g", WORKERS, EXECUTOR), command, python=str(python))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
