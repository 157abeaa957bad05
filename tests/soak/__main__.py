"""`make soak MINUTES=60 SEED=7`: a task over MySQL and MariaDB under random load and faults, compared again and again.

Each phase both sources are written for some twenty seconds while things go wrong; then they stand still, and once the
task is there every table of silver is compared with its source. Any difference ends the soak with the seed.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

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
from tests.support.lake import is_table
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
    """The task, its sources, and what goes wrong.

    Attributes:
        compared: tables so far.
        settled: for each phase, the seconds from its last write until silver had it.
    """

    spark: SparkSession
    sources: Sequence[Source]
    faults: Faults
    seed: int
    compared: int = 0
    settled: list[float] = field(default_factory=list)

    @property
    def lakehouse(self) -> Lakehouse:
        return Lakehouse(root=str(self.faults.runner.task.root))

    @property
    def rows(self) -> int:
        """Row changes written so far."""
        return sum(source.rows for source in self.sources)

    def phase(self, number: int, of_shards: list[str]) -> str:
        """Load and faults, then the comparison: a line about it.

        Raises:
            AssertionError: silver is not as the sources, or the task does not come there.
        """
        rng, faults = random.Random(f"{self.seed}/faults/{number}"), self.faults
        planned, before, rows = faults.plan(rng, PHASE_SECONDS), faults.counts.copy(), self.rows
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
        self.settled.append(settled - written)
        tables = self._compare()
        faults.disarm()
        what = ", ".join(f"{name} {n}" for name, n in sorted((faults.counts - before).items())) or "none"
        return (
            f"phase {number}: {self.rows - rows:,} rows written in {written - began:.0f} s, settled after "
            f"{settled - written:.0f} s, {tables} tables equal after {time.monotonic() - settled:.0f} s; faults: {what}"
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
        marks = self.lakehouse.silver(source.marks, "m")
        if not is_table(marks):
            return -1
        (row,) = self.spark.sql(f"SELECT max(id) AS id FROM {marks}").collect()
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
        silver = self.lakehouse.silver(schema, name)
        if not is_table(silver):
            yield f"{database}.{table} is not in silver"
            return
        rows = self.spark.table(silver)
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
    parser.add_argument("--json", type=Path, help="a file for the figures")
    chosen = parser.parse_args()
    print(f"soak: {chosen.minutes:g} minutes, SEED={chosen.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="dmdelta-soak-"))
    with opened(chosen.seed, folder) as soak:
        changes, began, number, failed = ShardChanges(chosen.seed), time.monotonic(), 0, 0
        try:
            while time.monotonic() - began < 60 * chosen.minutes:
                number += 1
                print(soak.phase(number, changes.of(number)), flush=True)
        except Exception as error:  # noqa: BLE001 - whatever it is, the seed is reported
            failed = 1
            print(f"{error}\nsoak: phase {number} of SEED={chosen.seed} failed; everything is in {folder}", flush=True)
        notes = _sum_up(soak, number, time.monotonic() - began)
    print("\n".join(notes), flush=True)
    if chosen.json:
        counted = {"passed": number - failed, "failed": failed, "faults": soak.faults.met, "rows": soak.rows}
        chosen.json.write_text(json.dumps({**counted, "notes": notes}) + "\n")
    return failed


def _sum_up(soak: Soak, phases: int, seconds: float) -> list[str]:
    """Lines about all phases."""
    done = sum((source.counts for source in soak.sources), start=Counter[str]())
    settled = (
        f"settled after {median(soak.settled):.0f} s (median), {max(soak.settled):.0f} s (most)" if soak.settled else ""
    )
    lines = [
        f"soak: {phases} phases in {seconds:.0f} s, {soak.rows / seconds:.0f} rows/s, {soak.compared:,} tables compared; {settled}"
    ]
    for title, counts in (("written", done), ("faults", soak.faults.counts)):
        lines.append(f"{title}: " + ", ".join(f"{name} {n:,}" for name, n in sorted(counts.items())))
    codes = ", ".join(f"{code}: {n}" for code, n in sorted(soak.faults.runner.ended.items()))
    return [*lines, f"the task ended and was started again, by exit code: {codes or 'never'}"]


if __name__ == "__main__":
    sys.exit(main())
