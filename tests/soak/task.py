"""The soak's task and its process: all sources through their proxies, merged shards, perhaps a sink."""

import os
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.soak.ends import Cause, plan_cause
from tests.soak.sources import Source
from tests.support.proxy import Proxy
from tests.support.servers import Server
from tests.support.sinking import sink_section
from tests.support.task import PASSWORD_VARIABLE, Task, TaskProcess

MERGED = ("merged", "t")
"""The target of the shards of all sources."""


@dataclass
class SoakTask(Task):
    """
    Attributes:
        target: of its sink; None: it has none.
    """

    sources: Sequence[Source] = ()
    proxies: Sequence[Proxy] = ()
    target: Server | None = None

    def write_spec(self) -> Path:
        servers = [
            {
                "source-id": source.source_id,
                "host": source.server.host,
                "port": proxy.port,
                "user": source.server.user,
                "password": f"${{{password_variable(source)}}}",
                "relay": {"dir": str(self.relay), "purge": self.purge},
            }
            for source, proxy in zip(self.sources, self.proxies, strict=True)
        ]
        merged = {
            "schema-pattern": "soak_?_shard*",
            "table-pattern": "t",
            "target-schema": MERGED[0],
            "target-table": MERGED[1],
        }
        spec: dict[str, object] = {
            "name": "soak",
            "task-mode": "all",
            "shard-mode": "pessimistic",
            "sources": servers,
            "routes": {"shards": merged},
            "block-allow-list": {"do-dbs": ["soak_*"]},
            "syncer": {"checkpoint-flush-interval": "2s", "target-freshness": "1s", **self.syncer},
            "lakehouse": {"root": str(self.root)},
            **({"sink": sink_section(self.target, "dm_soak")} if self.target is not None else {}),
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        self.spec.write_text(yaml.safe_dump(spec))
        return self.spec


def password_variable(source: Source) -> str:
    """The variable of the environment that has the password of a source's account."""
    return f"{PASSWORD_VARIABLE}_{source.source_id}"


@dataclass
class Runner:
    """The task's process, restarted whenever it has ended.

    Attributes:
        ended: how often with which exit code; a negative one is a signal's.
        causes: how often for which cause.
        unexplained: the exit code and the end of the output of each process that ended without a cause.
        failures: how often without a kill since `failures` was last set to 0.
        last_log: the end of the output of the last process that ended.
    """

    task: SoakTask
    ended: Counter[int] = field(default_factory=Counter)
    causes: Counter[Cause] = field(default_factory=Counter)
    unexplained: list[str] = field(default_factory=list)
    failures: int = 0
    last_log: str = ""
    _process: TaskProcess | None = None

    @property
    def process(self) -> TaskProcess:
        """The running process; the end of the last one is recorded before another one starts."""
        if self._process is None or self._process.poll() is not None:
            self._note_end()
            self._process = TaskProcess(self.task, "run", ())
        return self._process

    @property
    def has_ended(self) -> bool:
        """The process has ended and was not restarted yet."""
        return self._process is None or self._process.poll() is not None

    @property
    def log(self) -> str:
        """The end of the newest process's output."""
        return self._process.log() if self._process is not None else ""

    def freeze(self) -> None:
        """The process and all its children are stopped, as on a suspended machine."""
        os.killpg(self.process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.killpg(self.process.pid, signal.SIGCONT)

    def end(self) -> None:
        if self._process is not None:
            self._process.end()

    def _note_end(self) -> None:
        if self._process is not None:
            code = int(self._process.poll() or 0)
            self.ended[code] += 1
            self.failures += code != -signal.SIGKILL
            self.last_log = self._process.log()
            cause = plan_cause(code, self.last_log)
            if cause is None:
                self.unexplained.append(f"exit code {code}:\n{self.last_log}")
            else:
                self.causes[cause] += 1
