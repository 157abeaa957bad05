"""Whether all is well."""

from dataclasses import replace
from datetime import timedelta

import pytest

from dmdelta.report.facts import Checks
from dmdelta.report.verdict import Level, plan_verdict, state_of
from tests.support.reports import busy_report

LATER = busy_report().made_at + timedelta(minutes=6)


def well():
    """A report of a task with nothing to say against it."""
    report = busy_report()
    tables = tuple(replace(table, behind=False) for table in report.tables)
    return replace(report, checks=Checks(), tables=tables)


def told(report, **fields):
    return replace(report, status=replace(report.status, **fields))


def relayed(report, **fields):
    return told(report, sources=tuple(replace(source, **fields) for source in report.status.sources))


def test_a_task_that_runs_and_is_near_is_well():
    """No reason is given."""
    verdict = plan_verdict(well())
    assert (verdict.level, verdict.reasons, verdict.headline) == (Level.GOOD, (), "All is well")


@pytest.mark.parametrize(
    ("report", "level", "words"),
    [
        (told(well(), state="failed", error="no route", hint="check"), Level.TROUBLE, "The task failed: no route"),
        (told(well(), state="retrying", error="gone"), Level.ATTENTION, "It is tried again: gone"),
        (told(well(), state="paused"), Level.ATTENTION, "paused"),
        (relayed(well(), relay_at=well().made_at - timedelta(hours=1)), Level.ATTENTION, "its relay is silent"),
        (
            told(well(), error="no place for it"),
            Level.ATTENTION,
            "A table is stopped, the others go on: no place for it",
        ),
        (relayed(well(), relay="failed"), Level.TROUBLE, "relay of shop-mysql failed"),
        (relayed(well(), sink_lacks=("shop.orders",)), Level.ATTENTION, "shop.orders"),
        (replace(well(), window=None), Level.ATTENTION, "Nothing has landed"),
        (replace(well(), checks=busy_report().checks), Level.TROUBLE, "One check of data fails"),
        (replace(well(), checks=Checks(validator={"new": 2, "ignored": 5})), Level.TROUBLE, "2 rows differ"),
        (
            replace(well(), paces=(replace(well().paces[-1], silver_lag=301.0),)),
            Level.ATTENTION,
            "Silver is late",
        ),
        (
            replace(told(well(), state="stopped"), tables=busy_report().tables, made_at=LATER),
            Level.ATTENTION,
            "newest changes of shop.customers",
        ),
    ],
)
def test_what_is_not_well_is_told(report, level, words):
    """Each with its level and its words."""
    verdict = plan_verdict(report)
    assert verdict.level is level
    assert words in verdict.reasons[0].text


def test_the_worst_comes_first():
    """And sets the level."""
    report = told(replace(well(), checks=busy_report().checks), state="paused")
    assert [reason.level for reason in plan_verdict(report).reasons] == [Level.TROUBLE, Level.ATTENTION]


def test_a_task_that_never_said_a_word_runs_while_its_relay_does():
    """What just runs says nothing of itself."""
    silent = told(well(), state=None, state_at=None)
    assert state_of(silent) == "running"
    assert state_of(relayed(silent, relay="stopped")) == "not running"
    assert plan_verdict(relayed(silent, relay="stopped")).level is Level.GOOD
