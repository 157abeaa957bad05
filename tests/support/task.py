"""A task for a test: its spec on disk, its commands in a process, its tables."""

import contextlib
import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection
from pathlib import Path
from unittest.mock import patch

import yaml
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from dmdelta.cli.main import execute
from dmdelta.config import load_spec
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.run.runner import RunOptions, run_task
from dmdelta.failpoint import HANGS, VARIABLE, CrashPoint
from dmdelta.logging import configure
from tests.support.jvm import JVM_OPTIONS
from tests.support.servers import Server
from tests.support.sinking import sink_section

PASSWORD_VARIABLE = "DMDELTA_TEST_PASSWORD"
_METRICS = re.compile(r'"url": "http://127\.0\.0\.1:(\d+)/metrics"')
END_SECONDS = 120.0
"""Maximum seconds for a run in this process to end."""


@dataclass
class Task:
    """A task with one source in its own folder."""

    folder: Path
    server: Server
    database: str
    name: str = "t"
    source_id: str = "s1"
    tables: tuple[str, ...] = ()
    """The replicated tables; all of the database if empty."""
    mode: str = "incremental"
    settings: dict[str, object] = field(default_factory=dict)
    syncer: dict[str, object] = field(default_factory=dict)
    purge: dict[str, object] = field(default_factory=lambda: {"remain-space": 0})
    """No segment is purged because the machine's disk is nearly full."""
    jvm_options: str = JVM_OPTIONS
    """JVM options of its processes; benchmarks use the defaults."""
    lake: Path | None = None
    """Another task's lakehouse, for a second runner of the same task."""
    port: int | None = None
    """The port to connect to, if not the server's own."""

    @property
    def spec(self) -> Path:
        return self.folder / "task.yml"

    @property
    def root(self) -> Path:
        return self.lake or self.folder / "lake"

    @property
    def relay(self) -> Path:
        return self.folder / "relay"

    def write_spec(self) -> Path:
        """Write the spec file; `settings` override the defaults key by key."""
        position = self.settings.get("meta")
        source: dict[str, object] = {
            "source-id": self.source_id,
            "host": self.server.host,
            "port": self.port or self.server.port,
            "user": self.server.user,
            "password": f"${{{PASSWORD_VARIABLE}}}",
            "relay": {"dir": str(self.relay), "purge": self.purge},
        }
        if position is not None:
            source["meta"] = position
        allowed: dict[str, object] = {"do-dbs": [self.database]}
        if self.tables:
            allowed["do-tables"] = [{"db-name": self.database, "tbl-name": table} for table in self.tables]
        spec: dict[str, object] = {
            "name": self.name,
            "task-mode": self.mode,
            "sources": [source],
            "block-allow-list": allowed,
            "syncer": {"checkpoint-flush-interval": "2s", "target-freshness": "0s", **self.syncer},
            **{
                section: self.settings[section]
                for section in (
                    *("snapshot", "metrics", "quality", "validator", "maintenance", "routes", "shard-mode", "live"),
                    *("filters", "expression-filter"),
                )
                if section in self.settings
            },
            "lakehouse": {"root": str(self.root)},
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        self.spec.write_text(yaml.safe_dump(spec))
        return self.spec

    def start_here(self) -> None:
        """Start at the server's current position: the history before it belongs to other tests."""
        self.server.execute("FLUSH BINARY LOGS")  # a new file: checks read nothing before it
        file, offset, _ = self.server.position()
        self.settings["meta"] = {"binlog-name": file, "binlog-pos": offset}

    @property
    def failpoint(self) -> Path:
        """The file that arms a crash point of this task's processes."""
        return self.folder / "failpoint"

    @property
    def hangs(self) -> Path:
        """A file that exists while a process hangs at a crash point; the process continues once it is removed."""
        return self.failpoint.with_name(self.failpoint.name + HANGS)

    def arm(self, point: CrashPoint, fault: str = "kill", nth: int = 1) -> None:
        """Inject a fault once, in the process of the task that passes `point` for the nth time from now on."""
        self.folder.mkdir(parents=True, exist_ok=True)
        fresh = self.failpoint.with_suffix(".new")
        fresh.write_text(f"{point.value}:{nth}={fault}")
        fresh.rename(self.failpoint)

    @contextmanager
    def process(self, *arguments: str, command: str = "run") -> Iterator["TaskProcess"]:
        """`dmdelta run` (or another command) in its own process group, always killed at the end of the block."""
        process = TaskProcess(self, command, arguments)
        try:
            yield process
        finally:
            process.end()

    def catch_up(self, *arguments: str) -> None:
        """Run until everything that the server has now is in silver."""
        self.run("--until-caught-up", *arguments)

    def run(self, *arguments: str) -> None:
        """`dmdelta run` in this process, whose Spark is warm; it must succeed."""
        with self.environment():
            assert execute(["run", str(self.write_spec()), *arguments]) == 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """`dmdelta run` in a thread of this process, whose Spark is warm, until the block ends."""
        stop = StopRequest()
        configure(level=logging.WARNING)  # to this test's stderr: the previous test's is closed
        with self.environment(), ThreadPoolExecutor(1) as pool:
            ended = pool.submit(run_task, load_spec(self.write_spec()), RunOptions(), lambda _: None, stop)
            try:
                yield
            finally:
                stop.request()
                ended.result(END_SECONDS)

    def elsewhere(self) -> "Task":
        """The same task on another machine: with its own relay folder, and the same lakehouse."""
        return replace(self, folder=self.folder / "elsewhere", lake=self.root)

    def environment(self) -> AbstractContextManager[object]:
        """Set the environment variables that commands on this task need, in this process."""
        return patch.dict(os.environ, {PASSWORD_VARIABLE: self.server.password, VARIABLE: f"@{self.failpoint}"})


@dataclass
class SinkTask(Task):
    """A task with a sink; `sink` are further keys of its section."""

    target: Server | None = None
    sink: dict[str, object] = field(default_factory=dict)

    def write_spec(self) -> Path:
        path = super().write_spec()
        spec = yaml.safe_load(path.read_text())
        assert self.target is not None
        spec["sink"] = {**sink_section(self.target, f"dm_{self.database}"), **self.sink}
        path.write_text(yaml.safe_dump(spec))
        return path


class TaskProcess:
    """One running `dmdelta run`."""

    def __init__(self, task: Task, command: str, arguments: tuple[str, ...]) -> None:
        self._task = task
        task.write_spec()
        environment = {
            **os.environ,
            PASSWORD_VARIABLE: task.server.password,
            "JDK_JAVA_OPTIONS": task.jvm_options,
            "PYTHONUNBUFFERED": "1",
            VARIABLE: f"@{task.failpoint}",
        }
        self._output = task.folder / f"run-{time.monotonic_ns()}.log"
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [str(Path(sys.executable).with_name("dmdelta")), command, str(task.spec), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        watch = str(Path(__file__).with_name("watch.py"))
        self._watch = subprocess.Popen([sys.executable, "-S", "-E", watch, str(os.getpid()), str(self.pid)])

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.poll()

    def log(self) -> str:
        """The end of its output."""
        return self.whole_log()[-6000:]

    def whole_log(self) -> str:
        """Its output."""
        return self._output.read_text(errors="replace")

    def wait(self, seconds: float) -> int:
        """Its exit code; a process that does not end in time fails the test with its log."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {seconds} s:\n{self.log()}") from None

    def relay_pid(self) -> int:
        """The process id of the current relay."""
        folder = self._task.relay / self._task.source_id
        return int(json.loads((folder / "status.json").read_text())["pid"])

    def count(self, text: str) -> int:
        """How often it has printed `text`."""
        return self.whole_log().count(text)

    def wait_for(self, text: str, seconds: float = 90, times: int = 1) -> None:
        """Wait until it has printed `text` this many times."""
        end = time.monotonic() + seconds
        while self.count(text) < times:
            assert self.poll() is None, f"ended before {text!r}:\n{self.log()}"
            assert time.monotonic() < end, f"no {text!r} in {seconds} s:\n{self.log()}"
            time.sleep(0.05)

    def figures(self) -> dict[str, list[Sample]]:
        """Its current Prometheus metrics: samples by name."""
        found = _METRICS.search(self.whole_log())
        assert found is not None, self.log()
        with closing(HTTPConnection("127.0.0.1", int(found.group(1)), timeout=60)) as connection:
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
        return {family.name: family.samples for family in text_string_to_metric_families(text)}

    def terminate(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL to the runner only: its relay and its JVM must end without a signal."""
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """Kill the whole process group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self._watch.kill()
        self._watch.wait()
