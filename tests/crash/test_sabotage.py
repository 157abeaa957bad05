"""Sabotage: with a guard switched off the fault matrix and the soak fail. A cell that passed without it would prove nothing.

The property tests have theirs beside them: `tests/spark/silver/apply/test_any_batching.py` and `test_any_restart.py`,
`tests/unit/binlog/test_any_segments.py`.
"""

import re
import subprocess
import sys

import pytest

from tests.crash import faults
from tests.crash.bench import Bench
from tests.crash.rows import MEANWHILE, ROWS
from tests.crash.test_source_faults import begun, play
from tests.support.proxy import Proxy
from tests.support.sabotage import Guard, sabotaged_environment, switch_off
from tests.support.servers import running

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture
def bench(request, mysql80, spark, tmp_path):
    """The bench of the row that the test names."""
    (row,) = [row for row in ROWS if row.name == request.param]
    return Bench(spark, row, mysql80, mysql80, tmp_path)


@pytest.mark.parametrize("bench", ["silver, append"], indirect=True)
def test_without_idempotent_commits_a_second_runner_repeats_rows(bench, monkeypatch):
    switch_off([Guard.COMMITS], monkeypatch.setattr)
    with pytest.raises(AssertionError, match="differences"):
        faults.play(bench, "second runner")


@pytest.mark.parametrize("bench", ["silver, merge"], indirect=True)
def test_without_versions_a_second_runner_takes_rows_back(bench, monkeypatch):
    """Of two guards one is enough for rows that stay: so both are off before the cell fails."""
    monkeypatch.setattr(faults, "MEANWHILE", MEANWHILE[:1])
    switch_off([Guard.COMMITS], monkeypatch.setattr)
    faults.play(bench, "second runner")
    switch_off([Guard.VERSION], monkeypatch.setattr)
    with pytest.raises(AssertionError, match="differences"):
        faults.play(bench, "second runner")


@pytest.mark.parametrize("bench", ["silver, append, history forgotten"], indirect=True)
def test_without_the_exit_point_a_killed_run_s_rows_are_there_twice(bench, monkeypatch):
    """Of two guards one is enough: Delta skips a commit that it has, and what may be in the table already is replaced."""
    switch_off([Guard.COMMITS], monkeypatch.setattr)
    faults.play(bench, "kill")
    switch_off([Guard.EXIT_POINT], monkeypatch.setattr)
    with pytest.raises(AssertionError, match="differences"):
        faults.play(bench, "kill")


def test_without_transaction_boundaries_a_frozen_stream_cuts_a_transaction(spark, tmp_path, monkeypatch, capsys):
    """What has come is published while nothing more comes: up to a boundary, and not further."""
    with running("mysql80") as server, Proxy(server) as proxy:
        task = begun(server, tmp_path, port=proxy.port)
        play(spark, task, proxy, "frozen", "mid transaction", 2000)
        for name, value in sabotaged_environment([Guard.BOUNDARY]).items():
            monkeypatch.setenv(name, value)
        with pytest.raises(AssertionError):
            play(spark, task, proxy, "frozen", "mid transaction", 3000)
        assert "ends inside a transaction" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("guard", "says"),
    [
        (Guard.VERSION, r"counted\.n .* source \d+, silver \d+"),
        (Guard.COMMITS, r"appended .* more than once in silver"),
        (Guard.EXIT_POINT, r"appended .* more than once in silver"),
        (Guard.BOUNDARY, "ends inside a transaction"),
    ],
    ids=[guard.value for guard in Guard],
)
def test_without_a_guard_the_soak_fails(guard, says):
    """Its second phase passes with the guard, the third one, of the same load and the same fault, fails without it."""
    command = [sys.executable, "-m", "tests.soak", "--minutes", "10", "--seed", "7", "--sabotage", guard.value]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout[-4000:] + done.stderr[-4000:]
    assert "phase 2: " in done.stdout, done.stdout[-4000:]
    assert "phase 3 of SEED=7 failed" in done.stdout, done.stdout[-4000:]
    assert re.search(says, done.stdout), done.stdout[-4000:]
