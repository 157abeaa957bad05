"""A run of the event matrix on one server: both acts of every scenario are landed, applied and compared."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from tests.support.catalog import Observer
from tests.support.diff import Difference
from tests.support.event_scenarios import SHARED, Scenario, play, scenarios_of
from tests.support.oracle import bronze_vs_binlog
from tests.support.pipeline import Pipeline
from tests.support.recording import event_kinds, record
from tests.support.replay import Tables, decode, replay_differences
from tests.support.servers import Server
from tests.support.values import source_columns

_EVERYWHERE = frozenset({"changes", "changes_b", "prepared", "added_column", "keyless", "truncated", "create_select"})
"""The only tables applied to silver on every server: silver depends on bronze alone, so one server tests the others."""

Acts = tuple[list[Difference], list[Difference]]


@dataclass
class EventRun:
    """The results of a run.

    Attributes:
        silver: silver against the source after each act.
        decoded: the replayed codec output against the source after each act.
        kinds: the type codes of all events of the log.
        oracle: bronze against the server's own binlog.
        ops: (op, xid given, rows) of the bronze rows.
    """

    silver: Acts
    decoded: Acts
    kinds: set[int]
    oracle: list[str]
    ops: list[tuple[str, bool, int]]


def silver_tables(server: str, scenario: Scenario) -> set[str]:
    """The tables of a scenario that go to silver on a server: all on MySQL 8.0."""
    return set(scenario.tables) if server == "mysql80" else set(scenario.tables) & _EVERYWHERE


def run_event_matrix(server: Server, pipeline: Pipeline, folder: Path) -> EventRun:
    """All scenarios of a server, through codec, bronze and silver."""
    database = server.fresh_database("events")
    source = f"{server.name}-events"
    archive = folder / source
    scenarios = list(scenarios_of(server.name))
    tables = sorted({table for scenario in scenarios for table in scenario.tables})
    applied = sorted({table for scenario in scenarios for table in silver_tables(server.name, scenario)})
    server.execute(*SHARED, database=database)
    observer = Observer(server, database)
    silver: list[list[Difference]] = []
    decoded: list[list[Difference]] = []
    for act in ("first", "second"):
        for scenario in scenarios:
            play(server, database, getattr(scenario, act), observer.look)
        record(server, archive)
        pipeline.catch_up(archive, source, [database], server.flavor, observer.structures, applied)
        silver.append([found for table in applied for found in pipeline.differences(server, database, table)])
        decoded.append(_replay(server, database, tables, archive, observer))
    if server.flavor == "mysql":
        server.execute("SET GLOBAL gtid_mode = ON_PERMISSIVE")  # so that it sends anonymous transactions
    bronze = pipeline.bronze(source)
    counted = bronze.groupBy("op", F.col("xid").isNotNull().alias("prepared")).count().collect()
    return EventRun(
        (silver[0], silver[1]),
        (decoded[0], decoded[1]),
        event_kinds(archive),
        bronze_vs_binlog(server, bronze, [database]),
        [(row["op"], row["prepared"], row["count"]) for row in counted],
    )


def _replay(
    server: Server, database: str, tables: Collection[str], archive: Path, observer: Observer
) -> list[Difference]:
    keys = {table: source_columns(server, database, table)[1] for table in tables}
    keyed = [table for table in tables if keys[table]]
    state = Tables(lambda name: keys[name[1]])
    for change in decode(archive, lambda schema, table: schema == database and table in keyed, observer.by_name()):
        state.apply(change)
    faults = [Difference(fault.split(":")[0].split(".")[0], fault) for fault in state.faults]
    return faults + [line for table in keyed for line in replay_differences(server, database, table, state)]
