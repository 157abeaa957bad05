"""Sabotage: with a guard switched off the fault matrix fails. A cell that passed without it would prove nothing."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.readwriter import DataFrameWriter, DataFrameWriterV2

from dmdelta.checkpoint import restart_plan
from dmdelta.checkpoint.restart_plan import Branch, RestartPlan
from dmdelta.lakehouse import commits
from dmdelta.silver.rows import commits as steps
from tests.crash import faults
from tests.crash.bench import Bench
from tests.crash.rows import MEANWHILE, ROWS
from tests.crash.test_source_faults import begun, play
from tests.support.proxy import Proxy
from tests.support.servers import running

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
UNGUARDED = Path(__file__).with_name("unguarded")


@pytest.fixture
def bench(request, mysql80, spark, tmp_path):
    """The bench of the row that the test names."""
    (row,) = [row for row in ROWS if row.name == request.param]
    return Bench(spark, row, mysql80, mysql80, tmp_path)


@pytest.mark.parametrize("bench", ["silver, append"], indirect=True)
def test_without_idempotent_commits_a_second_runner_repeats_rows(bench, monkeypatch):
    switch_off_transactions(monkeypatch)
    with pytest.raises(AssertionError, match="differences"):
        faults.play(bench, "second runner")


@pytest.mark.parametrize("bench", ["silver, merge"], indirect=True)
def test_without_versions_a_second_runner_takes_rows_back(bench, monkeypatch):
    """Of two guards one is enough for rows that stay: so both are off before the cell fails."""
    monkeypatch.setattr(faults, "MEANWHILE", MEANWHILE[:1])
    switch_off_transactions(monkeypatch)
    faults.play(bench, "second runner")
    guarded = steps._merge
    older = " AND _dm_target._dm_version < _dm_source._dm_version"

    def unguarded(*arguments: Any) -> str:
        text = guarded(*arguments)
        assert older in text
        return text.replace(older, "")

    monkeypatch.setattr(steps, "_merge", unguarded)
    with pytest.raises(AssertionError, match="differences"):
        faults.play(bench, "second runner")


@pytest.mark.parametrize("bench", ["silver, append, history forgotten"], indirect=True)
def test_without_the_exit_point_a_killed_run_s_rows_are_there_twice(bench, monkeypatch):
    """Of two guards one is enough: Delta skips a commit that it has, and what may be in the table already is replaced."""

    def in_order(
        table: restart_plan.TableEvidence, source: restart_plan.SourceEvidence, _policy: object
    ) -> RestartPlan:
        return RestartPlan(restart_plan._floor(table, source), Branch.NORMAL_STOP, "sabotage")

    switch_off_transactions(monkeypatch)
    faults.play(bench, "kill")
    monkeypatch.setattr(restart_plan, "_plan_by_exit_point", in_order)
    with pytest.raises(AssertionError, match="differences"):
        faults.play(bench, "kill")


def test_without_transaction_boundaries_a_frozen_stream_cuts_a_transaction(spark, tmp_path, monkeypatch, capsys):
    """What has come is published while nothing more comes: up to a boundary, and not further."""
    with running("mysql80") as server, Proxy(server) as proxy:
        task = begun(server, tmp_path, port=proxy.port)
        play(spark, task, proxy, "frozen", "mid transaction", 2000)
        monkeypatch.setenv("PYTHONPATH", str(UNGUARDED))
        with pytest.raises(AssertionError):
            play(spark, task, proxy, "frozen", "mid transaction", 3000)
        assert "ends inside a transaction" in capsys.readouterr().err


def switch_off_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delta is not told which commit it is, so it cannot skip one that it has."""
    for writer in (DataFrameWriter, DataFrameWriterV2):
        monkeypatch.setattr(writer, "option", _but_transactions(writer.option))
    known = commits._set

    def told(spark: Any, name: str, value: str) -> None:
        if name == commits.USER_METADATA:
            known(spark, name, value)

    monkeypatch.setattr(commits, "_set", told)


def _but_transactions(option: Any) -> Any:
    def taken(writer: Any, name: str, value: Any) -> Any:
        return writer if name in ("txnAppId", "txnVersion") else option(writer, name, value)

    return taken
