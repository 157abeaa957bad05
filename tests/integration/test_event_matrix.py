"""The event matrix: every kind of binlog event, from a real server that produces it, to silver."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.event_matrix import EventRun, run_event_matrix
from tests.support.event_scenarios import scenarios_of
from tests.support.pipeline import Pipeline
from tests.support.servers import KINDS, Server, running

pytestmark = pytest.mark.long
_MARKS = {"mysql97": [pytest.mark.mysql97]}
_SERVERS = [pytest.param(server, marks=_MARKS.get(server, [])) for server in KINDS]


@pytest.mark.parametrize("name", _SERVERS)
def test_every_scenario(name: str, spark: SparkSession, tmp_path: Path) -> None:
    """All scenarios of a server in one log, on a server of its own: they change global settings."""
    with running(name) as server:
        run = run_event_matrix(server, Pipeline(spark, tmp_path / "lake"), tmp_path)
        wrong = [*_of_scenarios(server, run), *_of_bronze(server, run)]
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:60])


def _of_scenarios(server: Server, run: EventRun) -> Iterator[str]:
    """Differences of silver and of the replayed images from the source after each act, and missing event kinds."""
    scenarios = list(scenarios_of(server.name))
    for scenario in scenarios:
        missing = {kind.name for kind in scenario.kinds_on(server) if kind not in run.kinds}
        yield from (f"{scenario.name}: the log has no {kind}" for kind in sorted(missing))
    for what, acts in (("silver", run.silver), ("replayed images", run.decoded)):
        for number, one in ((number, one) for number, act in enumerate(acts, 1) for one in act):
            owners = [scenario.name for scenario in scenarios if scenario.owns(one.table, one.key)]
            yield f"{', '.join(owners) or 'no scenario'}, act {number}, {what}: {one}"


def _of_bronze(server: Server, run: EventRun) -> Iterator[str]:
    """Bronze has each row event of the server's own binlog listing once, XA ones with identifier and outcome.

    MariaDB logs what commits in one phase as a plain transaction.
    """
    yield from (f"bronze: {line}" for line in run.oracle)
    one_phase = 1 if server.flavor == "mysql" else 0
    expected = {("insert", True): 10 + 2 * one_phase, ("xa_rollback", True): 2, ("xa_commit", True): 3 + one_phase}
    counts = {(op, prepared): count for op, prepared, count in run.ops}
    yield from (
        f"bronze: {counts.get(kind, 0)} {kind[0]} of XA transactions instead of {count}"
        for kind, count in expected.items()
        if counts.get(kind, 0) != count
    )
