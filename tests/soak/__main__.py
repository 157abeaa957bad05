"""`make soak MINUTES=60 SEED=7`: a task over MySQL and MariaDB under random load and faults, compared again and again.

Each phase both sources are written for some twenty seconds while things go wrong; then they stand still, and once the
task is there every table of silver is compared with its source. Any difference ends the soak with the seed.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.ddl.types import silver_types
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.session import open_session
from dmdelta.sharding import Shard
from tests.soak.faults import Faults, Runner
from tests.soak.sources import ShardChanges, Source
from tests.support.diff import differences
from tests.support.proxy import Proxy
from tests.support.servers import running
from tests.support.task import PASSWORD_VARIABLE, Task

KINDS = {"a": "mysql80", "b": "mariadb"}
PHASE_SECONDS = 15.0
SETTLE_SECONDS = 300.0
"""So long the task may take to come to where its sources stand."""
EQUAL_SECONDS = 120.0
"""And then, until the last table is there: slow ones are left behind for a while."""
SERVER_KILLS = 0.1


@dataclass
class SoakTask(Task):
    """One task over all sources, each by way of its proxy."""

    sources: Sequence[Source] = ()
    proxies: Sequence[Proxy] = ()

    def write_spec(self) -> Path:
        servers = [
            {
                "source-id": f"s{number}",
                "host": source.server.host,
                "port": proxy.port,
                "user": source.server.user,
                "password": f"${{{PASSWORD_VARIABLE}_{number}}}",
                "relay": {"dir": str(self.relay), "purge": self.purge},
            }
            for number, (source, proxy) in enumerate(zip(self.sources, self.proxies, strict=True), 1)
        ]
        merged = {
            "schema-pattern": "soak_?_shard*",
            "table-pattern": "t",
            "target-schema": "merged",
            "target-table": "t",
        }
        spec = {
            "name": "soak",
            "task-mode": "all",
            "shard-mode": "pessimistic",
            "sources": servers,
            "routes": {"shards": merged},
            "block-allow-list": {"do-dbs": ["soak_*"]},
            "syncer": {"checkpoint-flush-interval": "2s", "target-freshness": "1s"},
            "lakehouse": {"root": str(self.root)},
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        self.spec.write_text(yaml.safe_dump(spec))
        return self.spec


@dataclass
class Soak:
    """The task, its sources, and what goes wrong."""

    spark: SparkSession
    sources: Sequence[Source]
    faults: Faults
    seed: int
    compared: int = 0

    @property
    def lakehouse(self) -> Lakehouse:
        return Lakehouse(root=str(self.faults.runner.task.root))

    def phase(self, number: int, of_shards: list[str]) -> str:
        """Load and faults, then the comparison: a line about it.

        Raises:
            AssertionError: silver is not as the sources, or the task does not come there.
        """
        rng, faults = random.Random(f"{self.seed}/faults/{number}"), self.faults
        planned, before = faults.plan(rng, PHASE_SECONDS), faults.counts.copy()
        began = time.monotonic()
        with ThreadPoolExecutor(len(self.sources)) as pool:
            writers = [pool.submit(source.work, number, of_shards) for source in self.sources]
            while not all(writer.done() for writer in writers):
                while planned and planned[0][0] <= time.monotonic() - began:
                    planned.pop(0)[1](rng)
                faults.tend()
                time.sleep(0.2)
            for writer in writers:
                writer.result()
        if rng.random() < SERVER_KILLS:
            faults.kill_server(rng)
        written = time.monotonic()
        self._settle(number)
        settled = time.monotonic()
        tables = self._compare()
        faults.disarm()
        what = ", ".join(f"{name} {n}" for name, n in sorted((faults.counts - before).items())) or "none"
        return (
            f"phase {number}: written {written - began:.0f} s, there after {settled - written:.0f} s, "
            f"{tables} tables the same; faults: {what}"
        )

    def _settle(self, number: int) -> None:
        deadline = time.monotonic() + SETTLE_SECONDS
        waiting = list(self.sources)
        while waiting:
            assert time.monotonic() < deadline, f"the task does not come to the mark of {waiting[0].letter}"
            self.faults.tend()
            time.sleep(1)
            waiting = [source for source in waiting if self._mark(source) < number]

    def _mark(self, source: Source) -> int:
        folder = self.faults.runner.task.root / "silver" / source.marks / "m"
        if not (folder / "_delta_log").exists():
            return -1
        (row,) = self.spark.sql(f"SELECT max(id) AS id FROM {self.lakehouse.silver(source.marks, 'm')}").collect()
        return -1 if row.id is None else int(row.id)

    def _compare(self) -> int:
        """Every table; those that are not there yet once more, until they had their time. How many there are."""
        deadline, left = time.monotonic() + EQUAL_SECONDS, list(self._tables())
        count = len(left)
        while left:
            found = {table: list(self._differences(*table)) for table in left}
            left = [table for table, lines in found.items() if lines]
            if left and time.monotonic() > deadline:
                raise AssertionError("\n".join(line for lines in found.values() for line in lines[:10]))
            if left:
                self.faults.tend()
                time.sleep(1)
        self.compared += count
        return count

    def _tables(self) -> Iterator[tuple[Source, str, str]]:
        for source in self.sources:
            yield from ((source, database, table) for database, table in source.tables())
            yield from ((source, shard, "t") for shard in source.shards)

    def _differences(self, source: Source, database: str, table: str) -> Iterator[str]:
        merged = database in source.shards
        schema, name = ("merged", "t") if merged else (database, table)
        if not (self.faults.runner.task.root / "silver" / schema / name / "_delta_log").exists():
            yield f"{database}.{table} is not there"
            return
        rows = self.spark.table(self.lakehouse.silver(schema, name))
        if merged:
            rows = rows.where(F.col(silver_types.SHARD) == str(Shard(f"s{source.number + 1}", database, table)))
        yield from (f"{database}.{line}" for line in differences(source.server, database, table, rows))


@contextmanager
def opened(seed: int, folder: Path) -> Iterator[Soak]:
    """Servers, proxies and the task, for the length of a `with`."""
    spark = open_session("dmdelta soak")
    with ExitStack() as stack:
        servers = {letter: stack.enter_context(running(kind)) for letter, kind in KINDS.items()}
        proxies = [stack.enter_context(Proxy(server)) for server in servers.values()]
        sources = [Source(server, letter, number, seed) for number, (letter, server) in enumerate(servers.items())]
        for number, source in enumerate(sources, 1):
            os.environ[f"{PASSWORD_VARIABLE}_{number}"] = source.server.password
        task = SoakTask(folder, sources[0].server, "", sources=sources, proxies=proxies)
        runner = Runner(task)
        stack.callback(runner.end)
        yield Soak(spark, sources, Faults(runner, sources, proxies), seed)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    chosen = parser.parse_args()
    print(f"soak: {chosen.minutes:g} minutes, SEED={chosen.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="dmdelta-soak-"))
    with opened(chosen.seed, folder) as soak:
        changes, end, number = ShardChanges(chosen.seed), time.monotonic() + 60 * chosen.minutes, 0
        try:
            while time.monotonic() < end:
                number += 1
                print(soak.phase(number, changes.of(number)), flush=True)
        except Exception as error:  # noqa: BLE001 - whatever it is, the seed is told
            print(f"{error}\nsoak: phase {number} of SEED={chosen.seed} failed; everything is in {folder}", flush=True)
            return 1
        finally:
            _sum_up(soak, number)
    return 0


def _sum_up(soak: Soak, phases: int) -> None:
    done = sum((source.counts for source in soak.sources), start=type(soak.sources[0].counts)())
    print(f"soak: {phases} phases, {soak.compared:,} tables compared")
    for title, counts in (("written", done), ("faults", soak.faults.counts)):
        print(f"  {title}: " + ", ".join(f"{name} {n:,}" for name, n in sorted(counts.items())))
    codes = ", ".join(f"{code}: {n}" for code, n in sorted(soak.faults.runner.ended.items()))
    print(f"  the task ended and was started again, by exit code: {codes or 'never'}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
