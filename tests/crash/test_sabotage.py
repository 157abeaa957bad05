"""Sabotage: without a guard the fault matrix and the soak fail. A cell that passes without it would prove nothing.

Those of the property tests: `tests/spark/silver/apply/test_any_batching.py` and `test_any_restart.py`,
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
def test_without_versions_a_second_runner_reverts_rows(bench, monkeypatch):
    """One of two guards suffices for rows that stay: the cell fails only with both off."""
    monkeypatch.setattr(faults, "MEANWHILE", MEANWHILE[:1])
    switch_off([Guard.COMMITS], monkeypatch.setattr)
    faults.play(bench, "second runner")
    switch_off([Guard.VERSION], monkeypatch.setattr)
    with pytest.raises(AssertionError, match="differences"):
        faults.play(bench, "second runner")


@pytest.mark.parametrize("bench", ["silver, append, history forgotten"], indirect=True)
def test_without_the_exit_point_a_killed_run_s_rows_are_duplicated(bench, monkeypatch):
    """One of two guards suffices: Delta skips a commit that it has, and rows that may be in the table are replaced."""
    switch_off([Guard.COMMITS], monkeypatch.setattr)
    faults.play(bench, "kill")
    switch_off([Guard.EXIT_POINT], monkeypatch.setattr)
    with pytest.raises(AssertionError, match="differences"):
        faults.play(bench, "kill")


def test_without_transaction_boundaries_a_frozen_stream_cuts_a_transaction(spark, tmp_path, monkeypatch, capsys):
    """Received events are published during the silence: up to a transaction boundary, and no further."""
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
    """The second phase passes with the guard; the third one, with the same load and fault, fails without it."""
    command = [sys.executable, "-m", "tests.soak", "--minutes", "10", "--seed", "7", "--sabotage", guard.value]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout[-4000:] + done.stderr[-4000:]
    assert "phase 2: " in done.stdout, done.stdout[-4000:]
    assert "phase 3 of SEED=7 failed" in done.stdout, done.stdout[-4000:]
    assert re.search(says, done.stdout), done.stdout[-4000:]
