"""The figures of a long run, and the page's sections. Pure: observations in, lines out."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median

TARGET = 1.3
"""The limit of the ratio between the end and the beginning, for durations and for numbers of files."""
FEW_FILES = 20
"""Counts that differ by no more count as equal: a compaction is due, or has just run."""
FEW, MANY = 5, 20
"""The numbers of hundreds that are compared: maintenance slows about one hundred in four."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A run at some time.

    Attributes:
        seconds: since the first moment.
        batches: that have landed.
        spent: (times, seconds) by phase.
        memory: PSS of all processes, in bytes.
        probes: seconds by the benchmark's own operation beside the run.
        files: number by kind of file.
        maintenance: how often tables were maintained, by action.
    """

    seconds: float
    batches: int
    spent: Mapping[str, tuple[float, float]]
    memory: int
    probes: Mapping[str, float]
    files: Mapping[str, int]
    maintenance: Mapping[str, int]

    def since(self, before: "Moment", phase: str) -> float:
        """The mean duration of a phase since then, in seconds; NaN if it did not happen."""
        times, seconds = (now - then for now, then in zip(self.spent[phase], before.spent[phase], strict=True))
        return seconds / times if times else math.nan


@dataclass(frozen=True, slots=True)
class Compared:
    """A duration at the beginning and at the end of a run, in seconds; NaN if it was not measured."""

    what: str
    first: float
    last: float

    @property
    def ratio(self) -> float:
        return self.last / self.first

    @property
    def verdict(self) -> str:
        if math.isnan(self.ratio):
            return "not measured"
        return "ok" if self.ratio <= TARGET else "too slow"

    def __str__(self) -> str:
        times = " | ".join(_milliseconds(seconds) for seconds in (self.first, self.last))
        return f"| {self.what} | {times} | {self.ratio:.2f} | ≤ {TARGET} | {self.verdict} |"


def compare(moments: Sequence[Moment], phases: Sequence[str]) -> Iterator[Compared]:
    """The first and the last hundreds of batches: medians of a few, without maintenance, and means of many, with it.

    Args:
        moments: one each hundred batches, from the end of the warm-up on; at least two.
    """
    few, many = (max(1, min(width, (len(moments) - 1) // 2)) for width in (FEW, MANY))
    hundreds = list(pairwise(moments))
    for phase in phases:
        begin, end = (_median_of(phase, some) for some in (hundreds[:few], hundreds[-few:]))
        yield Compared(f"{phase}, median of {few} hundreds", begin, end)
        begin, end = moments[many].since(moments[0], phase), moments[-1].since(moments[-1 - many], phase)
        yield Compared(f"{phase}, mean of {many} hundreds", begin, end)
    for probe in moments[0].probes:
        begin, end = (median(one.probes[probe] for one in some) for some in (moments[:few], moments[-few:]))
        yield Compared(f"{probe}, median of {few}", begin, end)
        begin, end = (fmean(one.probes[probe] for one in some) for some in (moments[:many], moments[-many:]))
        yield Compared(f"{probe}, mean of {many}", begin, end)


def _median_of(phase: str, hundreds: Sequence[tuple[Moment, Moment]]) -> float:
    """The median of a phase's mean durations, in seconds; NaN if it did not happen."""
    found = [seconds for before, now in hundreds if not math.isnan(seconds := now.since(before, phase))]
    return median(found) if found else math.nan


def comparison(compared: Sequence[Compared]) -> Iterator[str]:
    yield "| what | first | last | ratio | target | |"
    yield "| --- | ---: | ---: | ---: | ---: | --- |"
    yield from map(str, compared)


def course(moments: Sequence[Moment], phases: Sequence[str]) -> Iterator[str]:
    """Some moments: batches per second, the phases and memory, each since the moment before."""
    yield f"| batches | per second | {' | '.join(phases)} | memory (PSS) |"
    yield f"| --- | ---: |{' ---: |' * len(phases)} ---: |"
    for before, now in pairwise(selected(moments)):
        yield row_of(before, now, phases)


def row_of(before: Moment, now: Moment, phases: Sequence[str]) -> str:
    took = " | ".join(_milliseconds(now.since(before, phase)) for phase in phases)
    speed = (now.batches - before.batches) / (now.seconds - before.seconds)
    return f"| {before.batches:,} to {now.batches:,} | {speed:.1f} | {took} | {now.memory / 1e9:.2f} GB |"


def selected(moments: Sequence[Moment], most: int = 11) -> list[Moment]:
    """At most so many moments, evenly spread, the first and the last among them."""
    steps = min(most, len(moments)) - 1
    return [moments[number * (len(moments) - 1) // steps] for number in range(steps + 1)]


def files(moments: Sequence[Moment]) -> Iterator[str]:
    """The numbers of files at some moments, and whether they are bounded.

    Neither the most nor the least of the last quarter may exceed that of the second quarter by more than `TARGET`.
    """
    kinds = list(moments[0].files)
    yield f"| files after batches | {' | '.join(kinds)} |"
    yield f"| --- |{' ---: |' * len(kinds)}"
    for one in selected(moments):
        yield f"| {one.batches:,} | {' | '.join(f'{one.files[kind]:,}' for kind in kinds)} |"
    quarter = max(1, len(moments) // 4)
    second, last = moments[quarter : 2 * quarter], moments[-quarter:]
    for name, extreme in (("least", min), ("most", max)):
        found = {kind: [extreme(one.files[kind] for one in some) for some in (second, last)] for kind in kinds}
        yield f"| {name} in the second quarter | {' | '.join(f'{before:,}' for before, _ in found.values())} |"
        yield f"| {name} in the last quarter | {' | '.join(f'{now:,}' for _, now in found.values())} |"
        verdicts = ("ok" if now <= TARGET * before + FEW_FILES else "growing" for before, now in found.values())
        yield f"| at most {TARGET} times as many | {' | '.join(verdicts)} |"


def page_with(page: str, parts: Sequence[str], part: str, lines: Sequence[str]) -> list[str]:
    """The sections of a page, in the order of `parts`, with the lines of one of them replaced or added."""
    found = re.split(r"^## (.+)$\n*", page, flags=re.MULTILINE)[1:]
    kept = {title: text.strip("\n") for title, text in zip(found[::2], found[1::2], strict=True)}
    sections = kept | {part: "\n".join(lines).strip("\n")}
    return "\n\n".join(f"## {title}\n\n{sections[title]}" for title in parts if title in sections).splitlines()


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms" if seconds >= 0.01 else f"{seconds * 1000:,.1f} ms"
