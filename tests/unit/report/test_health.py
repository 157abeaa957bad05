"""The health of a task."""

from dataclasses import replace
from datetime import timedelta

import pytest

from dmdelta.report.facts import Checks
from dmdelta.report.health import Level, plan_verdict, state_of
from tests.support.reports import busy_report

LATER = busy_report().made_at + timedelta(minutes=6)


def well():
    """A report of a healthy task."""
    report = busy_report()
    tables = tuple(replace(table, behind=False) for table in report.tables)
    return replace(report, checks=Checks(), tables=tables)


def with_status(report, **fields):
    return replace(report, status=report.status.model_copy(update=fields))


def relayed(report, **fields):
    return with_status(report, sources=tuple(source.model_copy(update=fields) for source in report.status.sources))


def test_a_running_task_without_lag_is_healthy():
    """There is no reason."""
    verdict = plan_verdict(well())
    assert (verdict.level, verdict.reasons, verdict.headline) == (Level.GOOD, (), "Healthy")


@pytest.mark.parametrize(
    ("report", "level", "words"),
    [
        (
            with_status(well(), state="failed", error="no route", hint="check"),
            Level.TROUBLE,
            "The task failed: no route",
        ),
        (with_status(well(), state="retrying", error="gone"), Level.ATTENTION, "The task failed and is retrying: gone"),
        (with_status(well(), state="paused"), Level.ATTENTION, "paused"),
        (relayed(well(), relay_at=well().made_at - timedelta(hours=1)), Level.ATTENTION, "its relay is silent"),
        (
            with_status(well(), error="no place for it"),
            Level.ATTENTION,
            "A table is stopped, the others continue: no place for it",
        ),
        (relayed(well(), relay="failed"), Level.TROUBLE, "relay of shop-mysql failed"),
        (relayed(well(), sink_lacks=("shop.orders",)), Level.ATTENTION, "shop.orders"),
        (relayed(well(), sink_error="no answer"), Level.ATTENTION, "shop-mysql has a problem: no answer"),
        (
            relayed(replace(well(), made_at=LATER), sunk_to="1/binlog.000001:4", relay_at=LATER),
            Level.ATTENTION,
            "The sink of shop-mysql has not executed the newest changes",
        ),
        (replace(well(), window=None), Level.ATTENTION, "Nothing has landed"),
        (replace(well(), checks=busy_report().checks), Level.TROUBLE, "One data check fails"),
        (replace(well(), checks=Checks(validator={"new": 2, "ignored": 5})), Level.TROUBLE, "2 rows differ"),
        (
            replace(well(), paces=(replace(well().paces[-1], silver_lag=301.0),)),
            Level.ATTENTION,
            "Silver is late",
        ),
        (
            replace(with_status(well(), state="stopped"), tables=busy_report().tables, made_at=LATER),
            Level.ATTENTION,
            "newest changes of shop.customers",
        ),
    ],
)
def test_each_problem_is_a_reason(report, level, words):
    """Each with its level and its text."""
    verdict = plan_verdict(report)
    assert verdict.level is level
    assert words in verdict.reasons[0].text


def test_the_most_severe_reason_comes_first():
    """It determines the level."""
    report = with_status(replace(well(), checks=busy_report().checks), state="paused")
    assert [reason.level for reason in plan_verdict(report).reasons] == [Level.TROUBLE, Level.ATTENTION]


def test_a_task_without_a_reported_state_runs_while_its_relay_does():
    """A task only reports changes of its state."""
    silent = with_status(well(), state=None, state_at=None)
    assert state_of(silent) == "running"
    assert state_of(relayed(silent, relay="stopped")) == "not running"
    assert plan_verdict(relayed(silent, relay="stopped")).level is Level.GOOD
