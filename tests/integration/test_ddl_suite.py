"""Every kind of DDL on real servers: silver equals the source before it and after it.

A case runs live, in one batch and with kills, each time on another server (`on_server`): case and server, case and
course, server and course are covered in pairs. In one batch all run on MySQL 5.7, too: its log has no names of columns,
so that the structures of each position are known from the statements alone.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import pytest

from dmdelta.ddl.types.silver_types import OWN_COLUMNS
from dmdelta.errors import UnsupportedSchemaChange
from dmdelta.failpoint import CrashPoint
from dmdelta.silver.apply import context, renames
from dmdelta.silver.schema.evolution import DROPPED
from dmdelta.silver.table.table import has_shape
from tests.support.catalog import structures_of
from tests.support.pipeline import Pipeline
from tests.support.recording import record
from tests.support.servers import Server

CASES = Path(__file__).parent.parent / "golden" / "ddl" / "cases.txt"
USUAL = (
    "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT); "
    "INSERT INTO t VALUES (1,'x',10),(2,NULL,20),(3,'z',NULL)"
)
SERVERS = ["mysql80", "mysql57", "mariadb"]
LIVE, AT_ONCE, KILLED = range(3)
"""The courses: how the statements arrive, and what is killed meanwhile."""
PARTS = (2, 4, 2)
"""A table takes some seconds, so each course is split into parts; every test run executes one of them."""
QUICK = ("mysql80", 0)
ALL = ("mysql57", AT_ONCE)


@dataclass(frozen=True)
class Case:
    """One line: its name, three groups of statements, and the servers that it runs on."""

    name: str
    before: str
    ddl: str
    after: str
    servers: tuple[str, ...]
    stops: bool


def read_cases() -> list[Case]:
    cases = []
    for line in CASES.read_text().splitlines():
        if line.startswith("#"):
            continue
        name, before, ddl, after, *where = (part.strip() for part in line.split("|"))
        words = where[0].split() if where else []
        servers = tuple(word for word in words if word != "stops") or tuple(SERVERS)
        cases.append(Case(name, before or USUAL, ddl, after, servers, "stops" in words))
    return cases


def run_group(server: Server, database: str, group: str) -> None:
    """Run the statements of a group of a case (`before`, `ddl` or `after`) in one session."""
    statements = [*filter(None, group.replace("{db}", database).split("; "))]
    if not statements:  # those before may have dropped the database
        return
    with server.connect(database=database) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
            if statement.startswith("CREATE DATABASE"):
                connection.select_db(database)


@dataclass
class Suite:
    """All cases on one server, each in a database of its own, followed by one pipeline."""

    server: Server
    pipeline: Pipeline
    archive: Path
    cases: dict[str, Case] = field(default_factory=dict)
    """By database."""

    def do(self, *groups: str) -> None:
        """Run groups of statements (`before`, `ddl`, `after`) of every case."""
        for group in groups:
            for database, case in self.cases.items():
                run_group(self.server, database, getattr(case, group))

    def follow(self) -> None:
        """Land and apply everything that is new."""
        flavor = "mariadb" if self.server.name == "mariadb" else "mysql"
        archive = record(self.server, self.archive)
        self.pipeline.catch_up(archive, "s1", list(self.cases), flavor)

    def differences(self, *, stopping: bool = True) -> list[str]:
        """Differences from the expected state; with `stopping`, after the statements that silver does not follow."""
        found = []
        for database, case in self.cases.items():
            refused = [error for (schema, _), error in self.pipeline.refused.items() if schema == database]
            if case.stops and stopping:
                stopped = refused and isinstance(refused[0], UnsupportedSchemaChange)
                found += [] if stopped else [f"{case.name}: does not stop"]
            else:
                found += [f"{case.name}: {line}" for line in self._differences_of(database)]
        return found

    def _differences_of(self, database: str) -> Iterator[str]:
        known = f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{database}'"
        tables = [str(row[0]) for row in self.server.query(known)]
        for table in tables:
            yield from map(str, self.pipeline.differences(self.server, database, table))
        for schema in structures_of(self.server, database):
            target = self.pipeline.context("s1").table(schema.name)
            if not has_shape(self.pipeline.spark, target, schema):
                yield f"{schema.table} has another shape"
            columns = [name for name in self.pipeline.silver(*schema.name).columns if name not in OWN_COLUMNS]
            if columns != [column.name for column in schema.columns]:
                yield f"{schema.table} has its columns in another order: {columns}"
        there = {self.pipeline.lakehouse.silver(database, table) for table in tables}
        found = {f"delta.`{path}`" for path in (self.pipeline.root / "silver" / database).glob("*")}
        for silver in found - there:
            properties = dict(self.pipeline.spark.sql(f"SHOW TBLPROPERTIES {silver}").collect())
            if DROPPED not in properties or not self.pipeline.spark.table(silver).isEmpty():
                yield f"{silver} is gone at the source and not in silver"


def on_server(name: str, course: int) -> list[Case]:
    """The cases of a course on a server."""
    numbered = enumerate(read_cases())
    chosen = [case for number, case in numbered if name == case.servers[(number + course) % len(case.servers)]]
    return [case for case in read_cases() if case in chosen or (name in case.servers and (name, course) == ALL)]


def parts_of(course: int) -> list[object]:
    """Parameters of a test: servers, and parts of their cases."""
    every = [(server, part) for server in SERVERS for part in range(PARTS[course])]
    quick = QUICK if course == AT_ONCE else None
    return [pytest.param(*one, marks=() if one == quick else pytest.mark.long) for one in every]


def make_suite(server: Server, spark, folder: Path, course: int, part: int) -> Suite:
    suite = Suite(server, Pipeline(spark, folder / "lake"), folder / "archive")
    for case in on_server(server.name, course)[part :: PARTS[course]]:
        suite.cases[server.fresh_database("ddl")] = case
    return suite


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Server:
    return request.getfixturevalue(request.param)


def assert_same(suite: Suite, *, stopping: bool = True) -> None:
    found = suite.differences(stopping=stopping)
    assert not found, f"{len(found)} differences:\n" + "\n".join(found[:60])


@pytest.mark.parametrize(("server", "part"), parts_of(LIVE), indirect=["server"])
def test_live(server, spark, tmp_path, part):
    """Silver follows in steps: the rows, then the statements, then more rows."""
    suite = make_suite(server, spark, tmp_path, LIVE, part)
    for group in ("before", "ddl", "after"):
        suite.do(group)
        suite.follow()
        if group != "ddl":
            assert_same(suite, stopping=group == "after")


@pytest.mark.parametrize(("server", "part"), parts_of(AT_ONCE), indirect=["server"])
def test_in_one_batch(server, spark, tmp_path, part):
    """Everything in one batch: each statement finds the tables as they were at its position."""
    suite = make_suite(server, spark, tmp_path, AT_ONCE, part)
    suite.do("before", "ddl", "after")
    suite.follow()
    assert_same(suite)


class Killed(BaseException):
    """Represents the end of the process."""


class Killer:
    """Kills the applying of a table right before and right after each change of a silver table, in turn."""

    def __init__(self) -> None:
        self.kills = 0
        self._of_thread = threading.local()

    def reach(self, point: CrashPoint) -> None:
        attempt = getattr(self._of_thread, "attempt", 0)
        wanted = CrashPoint.SILVER_AFTER_CHANGE if attempt % 2 else CrashPoint.SILVER_BEFORE_CHANGE
        if point is wanted:
            self._of_thread.attempt = attempt + 1
            self.kills += 1
            raise Killed

    def begin(self) -> None:
        self._of_thread.attempt = 0


@pytest.mark.parametrize(("server", "part"), parts_of(KILLED), indirect=["server"])
def test_killed_around_each_change(server, spark, tmp_path, part):
    """After a kill right before or right after an ALTER, applying resumes there."""
    suite, killer = make_suite(server, spark, tmp_path, KILLED, part), Killer()
    suite.do("before")
    suite.follow()
    suite.do("ddl", "after")
    suite.pipeline.again_after, suite.pipeline.attempt = (Killed,), killer.begin
    with patch.object(context, "reach", killer.reach), patch.object(renames, "reach", killer.reach):
        suite.follow()
    assert killer.kills > len(suite.cases)
    assert_same(suite)
