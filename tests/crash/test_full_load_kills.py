"""Kills in every phase of a full load, while the tables change."""

import signal

import pytest

from dmdelta.cli.main import execute
from dmdelta.errors import StageFailed
from dmdelta.failpoint import CrashPoint
from tests.crash.test_crash_points import SNAPSHOT
from tests.integration.test_full_load import chunks_of
from tests.support.check import assert_silver_equals_source
from tests.support.loadable import fill
from tests.support.meddler import Meddler
from tests.support.task import Task

BIG = 450_000
"""More than the size of one commit."""
ON_WORKERS = (CrashPoint.SNAPSHOT_CHUNK_LOW, CrashPoint.SNAPSHOT_CHUNK_READ)
OVERLAP = (CrashPoint.SILVER_BEFORE_COMMIT, CrashPoint.SILVER_AFTER_COMMIT)
"""Points passed while the log is applied over the snapshot, after those of the snapshot itself."""
LOADS = [("mysql80", True), ("mariadb", False)]
"""Servers, and whether the rows go through bronze: what a kill interrupts depends on the path, not on the server.

Every pair of both is loaded without kills in tests/integration/test_full_load.py.
"""


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("server", "bronze"), LOADS)
def test_a_full_load_killed_in_each_phase_resumes_and_repeats_nothing(
    server, bronze, request, spark, tmp_path, record_property
):
    """A chunk partly read, between commits, at the snapshot's end, in the overlap: the next start resumes there."""
    source = request.getfixturevalue(server)
    settings = {"snapshot": {"bronze": bronze}}
    task = Task(tmp_path, source, source.fresh_database("load"), mode="all", settings=settings)
    fill(source, task.database, BIG)
    with Meddler(source, task.database, LOADS.index((server, bronze))):
        for point in (*SNAPSHOT, *OVERLAP):
            die_at(task, point)
    record_property("faults", len(SNAPSHOT) + len(OVERLAP))
    task.catch_up()
    assert_silver_equals_source(spark, task)
    recorded = chunks_of(spark, task)
    assert recorded["planned"] == recorded["landed"]


def die_at(task, point):
    """Run until the process dies at a crash point."""
    task.arm(point)
    with task.process() as process:
        # A Spark worker reads the chunk: the run notices its death, and ends with the next step.
        ended = StageFailed.exit_code if point in ON_WORKERS else -signal.SIGKILL
        assert process.wait(400) == ended, f"{point.value}: {process.log()}"


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_an_ad_hoc_snapshot_killed_in_each_phase_resumes_and_repeats_nothing(mysql80, spark, tmp_path, record_property):
    """Tables that join and tables that are read again: a chunk partly read, between commits, before their release."""
    task = Task(tmp_path, mysql80, mysql80.fresh_database("load"), mode="all", tables=("words", "notes", "pairs"))
    fill(mysql80, task.database, 60_000, every_type=False)
    with Meddler(mysql80, task.database, 6):
        task.catch_up()
        task.tables = ()
        task.write_spec()
        with task.environment():
            names = [f"--table={task.database}.{table}" for table in ("words", "notes")]
            assert execute(["snapshot", str(task.spec), *names]) == 0
        for point in SNAPSHOT:
            die_at(task, point)
    record_property("faults", len(SNAPSHOT))
    task.catch_up()
    assert_silver_equals_source(spark, task)
    recorded = chunks_of(spark, task)
    assert recorded["planned"] == recorded["landed"]
