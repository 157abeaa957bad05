"""Shard merge scenarios: statements on four shards of two servers; one task runs many scenarios at once."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from unittest.mock import patch

import yaml
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.cli.main import execute
from dmdelta.config import load_spec
from dmdelta.ddl.types.silver_types import OWN_COLUMNS, SHARD
from dmdelta.engine.apply.shard_locks import SILVER, list_locks, lock_id, unlock
from dmdelta.engine.task.task import open_task
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.sharding import Action
from dmdelta.sharding import Shard as ShardName
from tests.support.background import in_background
from tests.support.diff import Difference, differences
from tests.support.servers import Server
from tests.support.sinking import sink_section, union_differences
from tests.support.task import PASSWORD_VARIABLE, Task, TaskProcess

CASES = Path(__file__).parent.parent / "golden" / "sharding" / "cases.txt"
SHARDS = (1, 2, 3, 4)
MODES = ("pessimistic", "optimistic")
NOT_A_UNION = {"same_keys_in_all_shards", "moves_between_shards", "default_differs"}
"""The target is not the union here: it has one row per key and one default per column."""
BY_HAND = {"unlock_skip", "conflicting_orders_by_hand", "one_statement_or_two_by_hand", "types_conflict_by_hand"}
NEVER_ALL = {"rename_there_and_back", "a_shard_of_each_kind", "drop_and_add_again_at_once"}
"""Silver can hold these at once because it distinguishes the rows of the shards; the target cannot."""
WITHOUT_SINK = NOT_A_UNION | BY_HAND | NEVER_ALL
TASK = "shards"
BEGIN = "CREATE TABLE t (id INT PRIMARY KEY, v INT, w VARCHAR(40))"
LOAD = (
    "INSERT INTO t (id, v) VALUES ({n}, {n}), ({n} + 1, 0)",
    "UPDATE t SET v = v + 1 WHERE id % 3 = 0",
    "DELETE FROM t WHERE id = {n} - 3",
)
"""Changes of a shard's rows before and after each step; {n} grows."""


@dataclass(frozen=True)
class Case:
    """One line: its name, the modes it is for, and its steps between runs."""

    name: str
    modes: tuple[str, ...]
    phases: tuple[tuple[str, ...], ...]


def read_cases(mode: str) -> list[Case]:
    """The scenarios of a mode."""
    cases = []
    for line in CASES.read_text().splitlines():
        if line.startswith("#"):
            continue
        name, modes, steps = (part.strip() for part in line.split("|"))
        phases: list[list[str]] = [[]]
        for step in (step.strip() for step in steps.split(";")):
            if step == "run":
                phases.append([])
            else:
                phases[-1].append(step)
        chosen = ("pessimistic", "optimistic") if modes == "both" else (modes,)
        cases.append(Case(name, chosen, tuple(map(tuple, phases))))
    return [case for case in cases if mode in case.modes]


@dataclass
class ShardMerge:
    """Scenarios on two servers, each with its own merged table, in one task.

    Attributes:
        servers: of shards 1 and 2, and of the other shards.
        each: apply after every single step.
        target: the server of the task's sink; None: no sink.
    """

    servers: tuple[Server, Server]
    folder: Path
    mode: str
    cases: Sequence[Case]
    each: bool = False
    target: Server | None = None
    _shards: dict[str, set[int]] = field(default_factory=dict)
    _rows: int = 10

    def __post_init__(self) -> None:
        self._prefix = self.servers[0].fresh_database("s")

    def play(self) -> None:
        """Run every scenario to its end; raises AssertionError if locks are not as expected."""
        self.begin()
        self.run()
        for phase in zip_longest(*(self._phases(case) for case in self.cases), fillvalue=()):
            for case, steps in zip(self.cases, phase, strict=True):
                for step in steps:
                    self._step(case, step)
            self.run()
        self.run()

    def begin(self) -> None:
        """Create all shards, with some rows, and the spec."""
        for case in self.cases:
            self._shards[case.name] = set()
            for shard in SHARDS:
                self.create(case, shard)
                self._execute(case, shard, BEGIN)
                self.load(case, shard)
        self.write_spec()

    def create(self, case: Case, shard: int) -> None:
        """Create a shard's database; the shard is compared from now on."""
        self._execute(case, shard, f"CREATE DATABASE IF NOT EXISTS {self.database(case, shard)}", database=False)
        self._shards[case.name].add(shard)

    def alter(self, case: Case, statement: str, *shards: int) -> None:
        """Run a statement on shards."""
        for shard in shards:
            self._execute(case, shard, statement)

    def under_load(self, case: Case) -> AbstractContextManager[None]:
        """Change shards 1 to 4 of a scenario during the block."""

        def write(over: threading.Event) -> None:
            while not over.wait(0.2):
                for shard in SHARDS:
                    self.load(case, shard)

        return in_background(write)

    @contextmanager
    def process(self) -> Iterator[TaskProcess]:
        """`dmdelta run` in its own process, until the end of the block."""
        process = TaskProcess(_Written(self.folder, self.servers[0], ""), "run", ())
        try:
            yield process
        finally:
            process.end()

    def rows_of(self, spark: SparkSession, case: Case) -> dict[str, int]:
        """Rows in silver by shard."""
        counted = self.silver(spark, case).groupBy(SHARD).count().collect()
        return {row[SHARD]: row["count"] for row in counted}

    def count(self, case: Case, shard: int) -> int:
        """Rows of a shard at the source."""
        ((rows,),) = self.server(shard).query("SELECT COUNT(*) FROM t", database=self.database(case, shard))
        return int(rows)

    def assert_merged(self, spark: SparkSession) -> None:
        """Check that each merged table is the union of its shards, and that no lock remains."""
        found = [f"{case.name}: {line}" for case in self.cases for line in self._differences(spark, case)]
        assert not found, f"{len(found)} differences:\n" + "\n".join(found[:30])
        assert self.locks() == []

    def assert_sunk(self) -> None:
        """Check that each table of the sink's target is the union of its shards."""
        found = [f"{case.name}: {line}" for case in self.cases for line in self._target_differences(case)]
        assert not found, f"{len(found)} differences:\n" + "\n".join(found[:30])

    def locks(self) -> list[object]:
        return list(list_locks(open_task(load_spec(self.spec), writing=False)))

    def run(self, code: int = 0) -> None:
        """`dmdelta run --until-caught-up` in this process; its exit code must be `code`."""
        assert execute(["run", str(self.spec), "--until-caught-up"]) == code

    @property
    def spec(self) -> Path:
        return self.folder / "task.yml"

    @property
    def lake(self) -> Lakehouse:
        return Lakehouse(root=str(self.folder / "lake"))

    def write_spec(self, **more: object) -> None:
        """One route per scenario: its databases on both servers are routed to one table."""
        sources = [
            {
                "source-id": f"s{number}",
                "host": server.host,
                "port": server.port,
                "user": server.user,
                "password": f"${{{PASSWORD_VARIABLE}_{number}}}",
                "relay": {"dir": str(self.folder / "relay")},
            }
            for number, server in enumerate(self.servers, 1)
        ]
        routes = {
            case.name: {
                "schema-pattern": f"{self.database(case, 0)[:-1]}*",
                "table-pattern": "t",
                "target-schema": self.merged,
                "target-table": case.name,
            }
            for case in self.cases
        }
        spec = {
            "name": TASK,
            "task-mode": "all",
            "shard-mode": self.mode,
            "sources": sources,
            "routes": routes,
            "block-allow-list": {"do-dbs": [f"{self._prefix}_*"]},
            "lakehouse": {"root": str(self.folder / "lake")},
            **self._sink(),
            **more,
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        self.spec.write_text(yaml.safe_dump(spec))

    @property
    def merged(self) -> str:
        """The schema of the merged tables."""
        return "merged" if self.target is None else f"merged_{self._prefix}"

    def _sink(self) -> dict[str, object]:
        if self.target is None:
            return {}
        return {"sink": sink_section(self.target, f"dm_{self._prefix}")}

    def silver(self, spark: SparkSession, case: Case) -> DataFrame:
        return spark.table(self.lake.silver(self.merged, case.name))

    def server(self, shard: int) -> Server:
        return self.servers[0] if shard in (1, 2) else self.servers[1]

    def _phases(self, case: Case) -> Sequence[Sequence[str]]:
        if not self.each:
            return case.phases
        return [(step,) for phase in case.phases for step in phase]

    def _step(self, case: Case, step: str) -> None:
        which, _, rest = step.partition(" ")
        if which == "locks":
            target = lock_id(TASK, (self.merged, case.name))
            every = list_locks(open_task(load_spec(self.spec), writing=False))
            waiting = [lock for lock in every if lock.id == target and lock.side == SILVER]
            assert len(waiting) == int(rest), f"{case.name}: {rest} locks were expected, there are {waiting}"
        elif which == "unlock":
            target = lock_id(TASK, (self.merged, case.name))
            owner = next(
                lock.owner for lock in list_locks(open_task(load_spec(self.spec), writing=False)) if lock.id == target
            )
            unlock(open_task(load_spec(self.spec), writing=False), target, Action(rest), owner)
        else:
            for shard in SHARDS if which == "*" else map(int, which.split(",")):
                if "CREATE TABLE" in rest:
                    self.create(case, shard)
                else:
                    self.load(case, shard)
                self._execute(case, shard, rest)
                if "DROP TABLE" in rest:
                    self._shards[case.name].discard(shard)
            for shard in sorted(self._shards[case.name]):
                self.load(case, shard)

    def load(self, case: Case, shard: int) -> None:
        """Change some rows of a shard."""
        self._rows += 3
        for statement in LOAD:
            self._execute(case, shard, statement.format(n=self._rows))

    def _execute(self, case: Case, shard: int, statement: str, *, database: bool = True) -> None:
        self.server(shard).execute(statement, database=self.database(case, shard) if database else None)

    def database(self, case: Case, shard: int) -> str:
        return f"{self._prefix}_{self.cases.index(case):02d}_{shard}"

    def _target_differences(self, case: Case) -> list[str]:
        """The differences between the target's table and the union of the shards."""
        assert self.target is not None
        shards = [(self.server(shard), self.database(case, shard), "t") for shard in sorted(self._shards[case.name])]
        # The target keeps the rows of a dropped or truncated shard, as in DM.
        emptied = any(word in step for phase in case.phases for step in phase for word in ("TRUNCATE", "DROP TABLE"))
        return union_differences(shards, self.target, self.merged, case.name, counted=not emptied)

    def _differences(self, spark: SparkSession, case: Case) -> list[Difference]:
        silver = self.silver(spark, case)
        found: list[Difference] = []
        shown = set()
        for shard in sorted(self._shards[case.name]):
            source = f"s{1 if shard in (1, 2) else 2}"
            server, database = self.server(shard), self.database(case, shard)
            name = str(ShardName(source, database, "t"))
            shown.add(name)
            rows = silver.where(F.col(SHARD) == name)
            wanted = {row[0] for row in server.query("SHOW COLUMNS FROM t", database=database)}
            more = [column for column in rows.columns if column not in {*wanted, *OWN_COLUMNS, SHARD}]
            filled = [column for column in more if not rows.where(F.col(column).isNotNull()).isEmpty()]
            found += [Difference(name, "has values that the source does not have", column) for column in filled]
            found += differences(server, database, "t", rows.drop(*more))
        others = silver.where(~F.col(SHARD).isin(*shown)).count()
        return [*found, *([Difference(case.name, f"has {others} rows of no shard")] if others else [])]


class _Written(Task):
    """A task whose spec is already written."""

    def write_spec(self) -> Path:
        return self.spec


def environment(merge: ShardMerge) -> AbstractContextManager[object]:
    """Set the environment variables that commands on the task need."""
    passwords = {f"{PASSWORD_VARIABLE}_{number}": server.password for number, server in enumerate(merge.servers, 1)}
    return patch.dict(os.environ, passwords)


def wait_until(holds: Callable[[], bool], seconds: float) -> None:
    """Poll until the condition holds; raises AssertionError if it does not in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"it did not come about in {seconds} s"
        time.sleep(1)
