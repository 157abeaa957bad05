"""The event matrix: every kind of binlog event, from a real server that produces it, to silver."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.event_matrix import EventRun, run_event_matrix, silver_tables
from tests.support.event_scenarios import Scenario, scenarios_of
from tests.support.once import Once
from tests.support.pipeline import Pipeline
from tests.support.servers import KINDS, Server, running

pytestmark = pytest.mark.long
_MARKS = {"mysql97": [pytest.mark.mysql97]}
_CASES = [
    pytest.param(server, scenario, id=f"{server}-{scenario.name}", marks=_MARKS.get(server, []))
    for server in KINDS
    for scenario in scenarios_of(server)
]
_SILVER_CASES = [case for case in _CASES if silver_tables(str(case.values[0]), case.values[1])]
_SERVERS = [pytest.param(server, marks=_MARKS.get(server, [])) for server in KINDS]

RunOf = Callable[[str], tuple[Server, EventRun]]


@pytest.fixture(scope="module")
def run_of(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunOf]:
    """The matrix of a server, run when first asked for on a server of its own: scenarios change global settings."""
    folder: Path = tmp_path_factory.mktemp("events")
    pipeline = Pipeline(spark, folder / "lake")
    with ExitStack() as servers:

        def run(name: str) -> tuple[Server, EventRun]:
            server = servers.enter_context(running(name))
            return server, run_event_matrix(server, pipeline, folder)

        yield Once(run)


@pytest.mark.parametrize(("name", "scenario"), _SILVER_CASES)
def test_silver_equals_the_source_after_each_act(name: str, scenario: Scenario, run_of: RunOf) -> None:
    """Silver's rows are the source's, while the scenario is half done and when it is."""
    _, run = run_of(name)
    assert run.of_scenario(run.silver, scenario) == []


@pytest.mark.parametrize(("name", "scenario"), _CASES)
def test_the_server_wrote_the_events_and_they_replay(name: str, scenario: Scenario, run_of: RunOf) -> None:
    """The log holds the event kinds that the scenario is for, and its decoded images replay to the source's rows."""
    server, run = run_of(name)
    assert {kind.name for kind in scenario.kinds_on(server) if kind not in run.kinds} == set()
    assert run.of_scenario(run.decoded, scenario) == []


@pytest.mark.parametrize("name", _SERVERS)
def test_bronze_holds_every_row_event_once(name: str, run_of: RunOf) -> None:
    """Against the server's own listing of its binlog, bronze has no gap, no duplicate and nothing of its own."""
    _, run = run_of(name)
    assert run.oracle == []


@pytest.mark.parametrize("name", _SERVERS)
def test_bronze_tells_prepared_rows_and_verdicts(name: str, run_of: RunOf) -> None:
    """Rows of XA transactions carry their identifier, and each verdict is a row.

    MariaDB logs what commits in one phase as a plain transaction.
    """
    server, run = run_of(name)
    counts = {(op, prepared): count for op, prepared, count in run.ops}
    one_phase = 1 if server.flavor == "mysql" else 0
    assert counts["insert", True] == 10 + 2 * one_phase
    assert counts["xa_rollback", True] == 2
    assert counts["xa_commit", True] == 3 + one_phase
