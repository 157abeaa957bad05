"""The charts of a report, each with its texts and its data table."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from dmdelta.report.charts import COUNTS, DURATIONS, Chart, Series, Span, lined, place, stacked
from dmdelta.report.facts import OPS, Report
from dmdelta.report.formatting import duration_of, moment_of, whole_of
from dmdelta.report.time_buckets import Stretches, stretches_of

VERBS = {"insert": "inserts", "update": "updates", "delete": "deletes", "read": "snapshot reads"}
"""Display names of the ops."""


@dataclass(frozen=True, slots=True)
class Figure:
    """
    Attributes:
        name: for links and tests.
        note: what the values mean.
        summary: the maximum of each series and its time, as an alternative text for the chart.
        rows: the table: a time, and the formatted values.
    """

    name: str
    title: str
    note: str
    summary: str
    names: tuple[str, ...]
    chart: Chart
    rows: tuple[tuple[datetime, tuple[str, ...]], ...]


def figures_of(report: Report) -> list[Figure]:
    """The charts that have data."""
    if report.window is None:
        return []
    stretches = stretches_of(report.window.since, report.window.until)
    figures = [_lag(report, stretches), _rows(report, stretches), _times(report, stretches), _checks(report, stretches)]
    return [figure for figure in figures if figure.rows]


def _lag(report: Report, stretches: Stretches) -> Figure:
    series = _series(
        ("bronze", "silver"),
        {pace.at: {"bronze": pace.bronze_lag, "silver": pace.silver_lag} for pace in report.paces},
    )
    chart = lined(series, stretches, DURATIONS, behind=_bands(report, stretches), moments=_moments(report, stretches))
    return _figure("lag", "Lag over time", "Age of the newest change on arrival; maximum per interval.", series, chart)


def _rows(report: Report, stretches: Stretches) -> Figure:
    names = tuple(VERBS[op] for op in OPS if any(op in each.rows for each in report.rows))
    points = {each.at: {VERBS[op]: count for op, count in each.rows.items()} for each in report.rows}
    series = Series(names, points, whole_of)
    note = f"Row changes that landed per {duration_of(stretches.seconds)}, by operation."
    return _figure("rows", "Rows over time", note, series, stacked(series, stretches, COUNTS))


def _times(report: Report, stretches: Stretches) -> Figure:
    series = _series(
        ("landing", "applying"),
        {pace.at: {"landing": pace.land_seconds, "applying": pace.apply_seconds} for pace in report.paces},
    )
    note = "From the first segment read to the last silver commit; slowest batch per interval."
    return _figure("times", "Batch times", note, series, stacked(series, stretches, DURATIONS))


def _checks(report: Report, stretches: Stretches) -> Figure:
    points = {run.at: {"passed": run.passed, "failed": run.failed} for run in report.checks.runs}
    series = Series(("passed", "failed"), points, whole_of)
    note = f"Expectations evaluated per {duration_of(stretches.seconds)}."
    return _figure("checks", "Checks", note, series, stacked(series, stretches, COUNTS))


def _series(names: tuple[str, ...], points: Mapping[datetime, Mapping[str, float | None]]) -> Series:
    """Durations, without the time buckets that have none."""
    known = {at: point for at, point in points.items() if any(value is not None for value in point.values())}
    return Series(names, known, duration_of)


def _figure(name: str, title: str, note: str, series: Series, chart: Chart) -> Figure:
    rows = tuple(
        (at, tuple(series.word(value) if (value := point.get(each)) is not None else "" for each in series.names))
        for at, point in sorted(series.points.items())
    )
    return Figure(name=name, title=title, note=note, summary=_most(series), names=series.names, chart=chart, rows=rows)


def _most(series: Series) -> str:
    """The maximum of each series and its time."""
    summary: list[str] = []
    for name in series.names:
        known = [(value, at) for at, point in series.points.items() if (value := point.get(name)) is not None]
        if known:
            value, at = max(known)
            summary.append(f"{name} at most {series.word(value)}, at {moment_of(at)}")
    return "; ".join(summary)


def _bands(report: Report, stretches: Stretches) -> tuple[Span, ...]:
    """The periods in which safe mode was on."""
    spans: list[Span] = []
    for each in report.safe_ranges:
        left, right = place(each.first, stretches), place(each.last, stretches)
        spans.append(Span(left, max(right - left, 0.4), f"safe mode of {each.source_id}, to {each.end}"))
    return tuple(spans)


def _moments(report: Report, stretches: Stretches) -> tuple[Span, ...]:
    """The schema changes in the window."""
    first, end = stretches.starts[0], stretches.end
    return tuple(
        Span(place(each.at, stretches), 0, f"{each.table}: {each.statement}")
        for each in report.schema_changes
        if each.at is not None and first <= each.at <= end
    )
