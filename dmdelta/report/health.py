"""The health of a task, in one word, and the reasons if it is not healthy."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from dmdelta.engine.control.state import State
from dmdelta.report.facts import Report

SILENCE = timedelta(minutes=1)
"""A relay reports its position every second: after this silence it counts as gone."""
LATE = timedelta(minutes=5)
"""The threshold of the alert rules (monitoring/dmdelta.rules.yml)."""


class Level(str, Enum):
    """The health of a task."""

    GOOD = "good"
    ATTENTION = "attention"
    TROUBLE = "trouble"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a task is not healthy, and the next step."""

    level: Level
    text: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """
    Attributes:
        reasons: most severe first.
    """

    level: Level
    reasons: tuple[Reason, ...]

    @property
    def headline(self) -> str:
        return {Level.GOOD: "Healthy", Level.ATTENTION: "Needs attention", Level.TROUBLE: "Unhealthy"}[self.level]


def plan_verdict(report: Report) -> Verdict:
    """Decide the health of a task, and what an operator should know first."""
    every_reason = [*_of_state(report), *_of_tables(report), *_of_checks(report), *_of_sink(report)]
    order = list(Level)
    reasons = tuple(sorted(every_reason, key=lambda each: order.index(each.level), reverse=True))
    return Verdict(reasons[0].level if reasons else Level.GOOD, reasons)


def relay_reported_at(report: Report) -> datetime | None:
    """When a relay of the task last reported; None if this machine has no relay folder of it."""
    return max((source.relay_at for source in report.status.sources if source.relay_at is not None), default=None)


def state_of(report: Report) -> str:
    """The state of the task: the one it last reported, or the one its relays show."""
    reported_at = relay_reported_at(report)
    alive = reported_at is not None and report.made_at - reported_at < SILENCE
    if report.status.state in (None, State.RUNNING.value):
        ended = all(source.relay in (None, "stopped", "caught up", "failed") for source in report.status.sources)
        return "running" if alive and not ended else "not running"
    return report.status.state or ""


def _of_state(report: Report) -> Iterator[Reason]:
    status = report.status
    if status.state == State.FAILED.value:
        yield Reason(Level.TROUBLE, f"The task failed: {status.error}", status.hint)
    elif status.state == State.RETRYING.value:
        yield Reason(Level.ATTENTION, f"The task failed and is retrying: {status.error}", status.hint)
    elif status.state == State.PAUSED.value:
        yield Reason(Level.ATTENTION, "The task is paused", "dmdelta resume SPEC")
    elif status.state == State.RUNNING.value and state_of(report) != "running":
        hint = "find out how its process ended, and start it again: it resumes where it was"
        yield Reason(Level.ATTENTION, "The task is reported as running, but its relay is silent", hint)
    elif status.state == State.RUNNING.value and status.error:
        yield Reason(Level.ATTENTION, f"A table is stopped, the others continue: {status.error}", status.hint)
    for source in status.sources:
        if source.relay == "failed" and status.state != State.FAILED.value:
            yield Reason(Level.TROUBLE, f"The relay of {source.source_id} failed", "dmdelta check SPEC")
    if report.window is None:
        yield Reason(Level.ATTENTION, "Nothing has landed yet", "dmdelta run SPEC")


def _of_tables(report: Report) -> Iterator[Reason]:
    behind = [each for each in report.tables if each.behind]
    if behind and report.window is not None and report.made_at - report.window.until > LATE:
        names = ", ".join(each.table for each in behind)
        yield Reason(Level.ATTENTION, f"Silver has not applied the newest changes of {names}", "dmdelta status SPEC")
    newest = report.paces[-1].silver_lag if report.paces else None
    if newest is not None and newest > LATE.total_seconds():
        yield Reason(Level.ATTENTION, "Silver is late", "docs/runbook.md, DmdeltaSilverLate")


def _of_checks(report: Report) -> Iterator[Reason]:
    failed = len(report.checks.failed)
    if failed:
        text = "One data check fails" if failed == 1 else f"{failed} data checks fail"
        yield Reason(Level.TROUBLE, text, "see the list below, and docs/runbook.md")
    differ = report.checks.validator.get("new", 0)
    if differ:
        yield Reason(Level.TROUBLE, f"{differ:,} rows differ from the source", "dmdelta validate SPEC")


def _of_sink(report: Report) -> Iterator[Reason]:
    silent = report.window is not None and report.made_at - report.window.until > LATE
    for source in report.status.sources:
        if source.sink_error:
            hint = "the task's log shows the reason; docs/runbook.md, DmdeltaSinkStopped"
            yield Reason(Level.ATTENTION, f"The sink of {source.source_id} has a problem: {source.sink_error}", hint)
        elif silent and source.sunk_to not in (None, source.landed_to) and source.sink_lag_bytes != 0:
            text = f"The sink of {source.source_id} has not executed the newest changes"
            yield Reason(Level.ATTENTION, text, "docs/runbook.md, DmdeltaSinkLate")
        if source.sink_lacks:
            names = ", ".join(source.sink_lacks)
            yield Reason(Level.ATTENTION, f"The sink lacks rows that a snapshot read from {names}")
