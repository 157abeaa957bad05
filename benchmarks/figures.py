"""The figures of a freshness run and the tables that show them. Pure: what was observed in, lines out."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from benchmarks.ages import MINUTE, Event, Freshness, Spread, ages_of, between, by_minute, freshness_of, spread_of
from benchmarks.commit_log import Commit, Turns, ends, turns_of
from benchmarks.usage import Cpu, Memory, Usage, cpu_of, each_minute, memory_of


@dataclass(frozen=True, slots=True)
class Target:
    """Targets of a load on two cores: ages and the ratio of the worst table; None: no target."""

    p50: float | None = None
    p95: float | None = None
    first_p95: float | None = None
    memory: float | None = None
    ratio: float | None = None


@dataclass(frozen=True, slots=True)
class SchemaRows:
    """Structure rows in bronze: all, and the distinct (table, structure) pairs."""

    rows: int
    structures: int


@dataclass(frozen=True, slots=True)
class Run:
    """Observations of a run. Times are in UTC.

    Attributes:
        begin, end: the evaluated time, the first minute included.
        written: row changes, those after `end` included.
        late: the most seconds by which the writer was behind its plan.
        tail: how long the load continued after `end`, in seconds.
    """

    begin: datetime
    end: datetime
    samples: Sequence[Usage]
    written: int
    late: float
    tail: float

    @property
    def steady(self) -> datetime:
        """The end of the first minute."""
        return self.begin + MINUTE


@dataclass(frozen=True, slots=True)
class Figures:
    """What is printed. `steady` is from the second minute on."""

    steady: Freshness
    minutes: Sequence[Freshness]
    spread: Spread
    turns: Turns
    schema_rows: SchemaRows
    memory: Memory
    cpu: Cpu


def evaluate(
    run: Run, events: Sequence[Event], commits: Mapping[str, Sequence[Commit]], schema_rows: SchemaRows
) -> Figures:
    """The figures of a run. Pure.

    Raises:
        ValueError: the evaluated time is too short.
    """
    reached = {table: ends(some) for table, some in commits.items()}
    aged = ages_of(events, reached, run.end + timedelta(seconds=run.tail))
    steady = between(aged, run.steady, run.end)
    since = run.samples[-1].at - (run.end - run.steady).total_seconds()
    samples = [sample for sample in run.samples if sample.at >= since]
    return Figures(
        steady=freshness_of(steady),
        minutes=by_minute(aged, run.begin, run.end),
        spread=spread_of(steady),
        turns=turns_of(commits.values(), run.steady, run.end),
        schema_rows=schema_rows,
        memory=memory_of(samples),
        cpu=cpu_of(samples),
    )


def summary(figures: Figures, target: Target) -> Iterator[str]:
    """The figures that have targets."""
    yield "| figure | measured | target |"
    yield "| --- | ---: | ---: |"
    yield f"| p50 from the second minute on | {figures.steady.p50:.1f} s | {_most(target.p50, _seconds)} |"
    yield f"| p95 from the second minute on | {figures.steady.p95:.1f} s | {_most(target.p95, _seconds)} |"
    yield f"| p95 of the first minute | {figures.minutes[0].p95:.1f} s | {_most(target.first_p95, _seconds)} |"
    spread, turns, structures = figures.spread, figures.turns, figures.schema_rows
    p95 = f"{spread.worst_p95:.1f} s, {spread.median_p95:.1f} s: {spread.ratio:.2f}"
    yield f"| p95 of the worst table ({spread.worst}), of the median one: ratio | {p95} | {_most(target.ratio, str)} |"
    commits = f"{turns.commits:,} / {turns.turns:,} = {turns.commits / max(turns.turns, 1):.2f}"
    yield f"| commits of silver per table and turn | {commits} | 1 |"
    yield f"| schema rows in bronze per structure | {structures.rows:,} / {structures.structures:,} | 1 |"
    memory = f"{_most(target.memory, _gigabytes)}, flat".removeprefix(", ")
    yield f"| memory (PSS): least / median / most, trend | {figures.memory} | {memory} |"
    yield f"| CPU | {figures.cpu} | |"


def per_minute(figures: Figures) -> Iterator[str]:
    """The freshness of each minute's changes, and of all from the second minute on."""
    yield "| changes of | number | not in silver | p50 | p95 | oldest |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    named = [(f"minute {number}", some) for number, some in enumerate(figures.minutes, start=1)]
    for what, some in [("the second minute on", figures.steady), *named]:
        ages = f"{some.p50:.1f} s | {some.p95:.1f} s | {some.oldest:.1f} s"
        yield f"| {what} | {some.rows:,} | {some.missing:,} | {ages} |"


def lines_of(run: Run, figures: Figures, target: Target) -> Iterator[str]:
    """The page's tables."""
    yield from summary(figures, target)
    yield ""
    yield from per_minute(figures)
    yield ""
    minutes = (run.end - run.steady) / MINUTE
    yield f"Commits of silver per second, from the second minute on: {figures.turns.commits / (60 * minutes):.2f}."
    others = ", ".join(f"{operation} {number}" for operation, number in sorted(figures.turns.others.items()))
    yield f"Other commits of silver: {others or 'none'}."
    yield each_minute(run.samples)
    yield f"{run.written:,} row changes were written; the writer was at most {run.late:.1f} s late."
    yield f"The load continued for {run.tail:.0f} s after the evaluated time. Load average: {os.getloadavg()[1]:.1f}."


def _most(number: float | None, shown: Callable[[float], str]) -> str:
    return "" if number is None else f"≤ {shown(number)}"


def _seconds(number: float) -> str:
    return f"{number:.0f} s"


def _gigabytes(number: float) -> str:
    return f"{number / 1e9:.1f} GB"
