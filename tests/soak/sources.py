"""The load of a source in each phase: a shop, bursts, tables that come and change, online DDL, two shards."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain, cycle, takewhile
from threading import Event
from typing import Any

from pymysql.connections import Connection

from tests.integration.test_ddl_suite import Case, read_cases, run_group
from tests.support.online_ddl import GH_OST, PT_OSC, TABLE
from tests.support.servers import Server
from tests.support.shop import KEYLESS, TABLES, Clerk

SHARDS = (1, 2)
SHARD = "CREATE TABLE t (id INT PRIMARY KEY, v INT, w VARCHAR(40))"
LANE = 100_000_000
"""The distance between the keys of two shards: no two have the same."""
STEPS = 60
PAUSE = 0.15
BURSTS = 8
"""Per phase and source, each of thousands of row changes."""
BURST_ROWS = (500, 4_000)
BURST_TABLE = "CREATE TABLE b (id INT PRIMARY KEY, v INT, w VARCHAR(60) NOT NULL, d DECIMAL(12,2), at DATETIME(3))"
BURST_KEPT = 8_000
"""The number of rows kept in the table of the bursts: a comparison reads them all."""
KEYED = ("b", "appended", "counted")
"""Tables of the load, each with a key: bursts, rows that are only inserted, rows that are only updated."""
LOAD_TABLES = (
    BURST_TABLE,
    "CREATE TABLE appended (id INT AUTO_INCREMENT PRIMARY KEY, v INT)",
    "CREATE TABLE counted (id INT PRIMARY KEY, n INT)",
    "INSERT INTO counted VALUES (1, 0), (2, 0), (3, 0)",
)
ONLINE_EVERY = 3
"""A source executes online DDL in every third phase."""
KEPT = 4
"""The number of databases of changed tables at a time: older ones are dropped."""


class Load(Enum):
    """A load of one kind alone, for a phase that tests one guard."""

    INSERTS = "inserts"
    UPDATES = "updates"
    BURSTS = "bursts"


@dataclass(eq=False)
class Source:
    """The load of one server. The same seed writes the same statements in each phase.

    Attributes:
        letter: part of its databases' names.
        number: of the source among the others, from 0 on.
        cases: the cases of the DDL suite take part.
        counts: the operations so far.
    """

    server: Server
    letter: str
    number: int
    seed: int
    cases: bool = True
    counts: Counter[str] = field(default_factory=Counter)
    _changed: list[str] = field(default_factory=list)
    _rows: int = 0
    _burst_key: int = 0
    _shard_key: int = 0

    def __post_init__(self) -> None:
        self._cases = [case for case in read_cases() if self.server.name in case.servers and not case.stops]
        self.server.execute(*(f"CREATE DATABASE {name}" for name in (self.shop, self.marks, self.load, *self.shards)))
        self.server.execute(*TABLES.values(), *KEYLESS.values(), database=self.shop)
        self.server.execute("CREATE TABLE m (id INT PRIMARY KEY)", database=self.marks)
        self.server.execute(*LOAD_TABLES, database=self.load)
        for shard in self.shards:
            self.server.execute(SHARD, database=shard)
        self._connection = self._connect()
        self._clerk = Clerk(self._connection.cursor(), self.seed, self.number, keyless=True)
        self._clerk.open_shop()

    @property
    def shop(self) -> str:
        return f"soak_{self.letter}_shop"

    @property
    def marks(self) -> str:
        return f"soak_{self.letter}_marks"

    @property
    def load(self) -> str:
        return f"soak_{self.letter}_load"

    @property
    def rows(self) -> int:
        """Row changes so far, without those of DDL cases."""
        return self._clerk.rows + self._rows

    @property
    def shards(self) -> list[str]:
        return [f"soak_{self.letter}_shard{number}" for number in SHARDS]

    @property
    def source_id(self) -> str:
        return f"s{self.number + 1}"

    @property
    def place(self) -> str:
        """The end of its log, as `dmdelta replay` takes it."""
        file, offset, _ = self.server.position()
        return f"{file}:{offset}"

    def work(self, phase: int, of_shards: list[str]) -> None:
        """One phase, up to its mark."""
        self._do(phase, self._acts(self._rng(phase), phase, of_shards))

    def work_around(self, met: Event, phase: int, only: Load) -> None:
        """One phase of one kind of load: it begins before a fault, lasts until it has been met, and continues after."""
        acts = self._acts_of(only, self._rng(phase))
        half = len(acts) // 2
        more = takewhile(lambda _: not met.is_set(), cycle(acts))
        self._do(phase, chain(acts[:half], more, acts[half:]))

    def _do(self, phase: int, acts: Iterable[Callable[[], None]]) -> None:
        for act in acts:
            act()
            time.sleep(PAUSE)
        self.counts["transactions"] = self._clerk.transactions
        self.counts["rows"] = self.rows
        self.server.execute(f"INSERT INTO m VALUES ({phase})", database=self.marks)

    def _rng(self, phase: int) -> random.Random:
        return random.Random(f"{self.seed}/{self.letter}/{phase}")

    def _acts(self, rng: random.Random, phase: int, of_shards: list[str]) -> list[Callable[[], None]]:
        acts: list[Callable[[], None]] = [self._clerk.step] * STEPS
        acts += [lambda: self._load_shard(rng)] * (STEPS // 4)
        acts += [self._append, self._count] * (STEPS // 4)
        acts += [lambda: self._burst(rng)] * BURSTS
        if self.cases:
            acts.append(lambda: self._change_tables(rng, phase))
        if phase % ONLINE_EVERY == self.number:
            acts.append(lambda: self._change_online(rng, phase))
        rng.shuffle(acts)
        for shard in self.shards:
            at = rng.randrange(len(acts))
            acts[at:at] = [self._statement_on(shard, text) for text in of_shards]
        return acts

    def _acts_of(self, only: Load, rng: random.Random) -> list[Callable[[], None]]:
        kinds: dict[Load, list[Callable[[], None]]] = {
            Load.INSERTS: [self._append] * STEPS,
            Load.UPDATES: [self._count] * STEPS,
            Load.BURSTS: [lambda: self._burst(rng)] * 3 * BURSTS,
        }
        return kinds[only]

    def tables(self) -> Iterator[tuple[str, str]]:
        """Database and table of all existing tables except the shards'."""
        query = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema LIKE 'soak%'"
        for schema, table in self.server.query(query):
            if schema not in self.shards:
                yield str(schema), str(table)

    def reconnect(self) -> None:
        """After a restart of the server."""
        self._connection = self._connect()
        self._clerk.go_on(self._connection.cursor())

    def _connect(self) -> "Connection[Any]":
        return self.server.connect(database=self.shop, autocommit=False)

    def _statement_on(self, shard: str, text: str) -> Callable[[], None]:
        def act() -> None:
            self.server.execute(text, database=shard)
            self.counts["statements on shards"] += 1

        return act

    def _append(self) -> None:
        self._write(self.load, "INSERT INTO appended (v) VALUES (1), (2)")

    def _count(self) -> None:
        self._write(self.load, "UPDATE counted SET n = n + 1")

    def _burst(self, rng: random.Random) -> None:
        """Thousands of rows as fast as the server takes them, in one transaction or in three; old ones are deleted."""
        first, count = self._burst_key, rng.randint(*BURST_ROWS)
        self._burst_key += count
        rows = [
            (
                key,
                rng.randrange(1000),
                f"burst {key} " + "ü" * rng.randrange(40),
                rng.randrange(10**9) / 100,
                rng.choice((None, "2026-01-05 08:00:00.125")),
            )
            for key in range(first, first + count)
        ]
        statements = (
            f"UPDATE b SET v = v + 1 WHERE id >= {first + count - rng.randint(1, BURST_KEPT)}",
            f"DELETE FROM b WHERE id < {self._burst_key - BURST_KEPT}",
        )
        with self.server.connect(database=self.load, autocommit=rng.random() < 0.5) as connection:
            with connection.cursor() as cursor:
                self._rows += cursor.executemany("INSERT INTO b VALUES (%s,%s,%s,%s,%s)", rows) or 0
                self._rows += sum(cursor.execute(statement) for statement in statements)
            connection.commit()
        self.counts["bursts"] += 1

    def _load_shard(self, rng: random.Random) -> None:
        self._shard_key += 3
        shard = rng.choice(SHARDS)
        key = (2 * self.number + shard) * LANE + self._shard_key
        self._write(
            self.shards[shard - 1],
            f"INSERT INTO t (id, v) VALUES ({key}, {self._shard_key}), ({key} + 1, 0)",
            f"UPDATE t SET v = v + 1 WHERE id % 7 = {rng.randrange(7)}",
            f"DELETE FROM t WHERE id = {key} - {3 * rng.randrange(1, 9)}",
        )

    def _write(self, database: str, *statements: str) -> None:
        with self.server.connect(database=database) as connection, connection.cursor() as cursor:
            self._rows += sum(cursor.execute(statement) for statement in statements)

    def _change_tables(self, rng: random.Random, phase: int) -> None:
        """One case of the DDL suite."""
        case: Case = rng.choice(self._cases)
        database = self._fresh(f"{phase}_ddl")
        for group in (case.before, case.ddl, case.after):
            run_group(self.server, database, group)
        self.counts["DDL cases"] += 1

    def _change_online(self, rng: random.Random, phase: int) -> None:
        """The statements of gh-ost or pt-online-schema-change."""
        database = self._fresh(f"{phase}_online")
        steps = rng.choice((GH_OST, PT_OSC)).strip().replace("{db}", database).splitlines()
        self.server.execute(*TABLE, *steps, database=database)
        self.counts["online DDL"] += 1

    def _fresh(self, name: str) -> str:
        """Create a new database and drop the oldest one."""
        database = f"soak_{self.letter}_{name}"
        self.server.execute(f"CREATE DATABASE {database}")
        self._changed.append(database)
        if len(self._changed) > KEPT:
            self.server.execute(f"DROP DATABASE IF EXISTS {self._changed.pop(0)}")
        return database
