"""The layout of a chart: values in, positions in percent of the plot out. The page draws them.

Positions are measured from the left and from the top. A plot is as wide as its screen, so nothing here is in pixels.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from dmdelta.report.formatting import count_of, duration_of
from dmdelta.report.time_buckets import Stretches, plan_step

TIME_TICKS = 6
VALUE_TICKS = 4
_DURATIONS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
_GAP = 0.16
"""The share of a time bucket that is left free between two bars."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A label on one axis."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A segment of a stacked bar."""

    series: str
    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Line:
    """The line of one series.

    Attributes:
        path: SVG path data; it has a gap where there is no value.
        dots: (left, top) of each value.
    """

    series: str
    path: str
    dots: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Span:
    """A period of time in the plot; a single moment if `width` is 0."""

    left: float
    width: float
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """
    Attributes:
        spots: one per time bucket with values, over the whole height, with its tooltip.
        bands, moments: periods drawn behind the marks, and moments drawn as a line.
    """

    times: tuple[Tick, ...]
    values: tuple[Tick, ...]
    bars: tuple[Bar, ...] = ()
    lines: tuple[Line, ...] = ()
    spots: tuple[Span, ...] = ()
    bands: tuple[Span, ...] = ()
    moments: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Scale:
    """The value axis.

    Attributes:
        ticks: round values from 0 to at least the maximum.
        word: formats a tick's label.
    """

    ticks: Callable[[float], list[float]]
    word: Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Series:
    """The data of a chart: values by series and time bucket; a bucket without an entry has none.

    Attributes:
        names: in stacking order.
        word: formats a value in full.
    """

    names: tuple[str, ...]
    points: Mapping[datetime, Mapping[str, float | None]]
    word: Callable[[float], str]

    def text_at(self, at: datetime) -> str:
        """The values of a time bucket, as text."""
        known = ((name, self.points[at].get(name)) for name in self.names)
        return ", ".join(f"{name} {self.word(value)}" for name, value in known if value is not None)


def stacked(series: Series, stretches: Stretches, scale: Scale) -> Chart:
    """Stacked bars."""
    axis = _Axis(stretches)
    most = max((sum(value or 0 for value in point.values()) for point in series.points.values()), default=0)
    marks = scale.ticks(most)
    bars: list[Bar] = []
    for at, point in series.points.items():
        top = 100.0
        for name in series.names:
            height = 100 * (point.get(name) or 0) / marks[-1]
            if height > 0:
                top -= height
                left, width = axis.left(at) + axis.width * _GAP / 2, axis.width * (1 - _GAP)
                bars.append(Bar(name, _short(left), _short(top), _short(width), _short(height)))
    return Chart(axis.ticks(), _value_ticks(marks, scale.word), bars=tuple(bars), spots=axis.spots(series))


def lined(
    series: Series, stretches: Stretches, scale: Scale, *, behind: Sequence[Span] = (), moments: Sequence[Span] = ()
) -> Chart:
    """One line per series.

    Args:
        behind, moments: the chart's `bands` and `moments`.
    """
    axis = _Axis(stretches)
    known = [value for point in series.points.values() for value in point.values() if value is not None]
    marks = scale.ticks(max(known, default=0))
    lines = (_line(name, series, axis, marks[-1]) for name in series.names)
    return Chart(
        axis.ticks(),
        _value_ticks(marks, scale.word),
        lines=tuple(line for line in lines if line.dots),
        spots=axis.spots(series),
        bands=tuple(behind),
        moments=tuple(moments),
    )


def duration_ticks(most: float) -> list[float]:
    """Round durations from 0 to at least `most` seconds."""
    return _ticks(
        most, next((step for step in _DURATIONS if step * VALUE_TICKS >= most), None) or _round(most / 86400) * 86400
    )


def count_ticks(most: float) -> list[float]:
    """Round numbers from 0 to at least `most`."""
    return _ticks(most, max(1.0, _round(most / VALUE_TICKS)))


DURATIONS = Scale(duration_ticks, duration_of)
COUNTS = Scale(count_ticks, count_of)


def place(moment: datetime, stretches: Stretches) -> float:
    """The position of a moment in the plot."""
    first = stretches.starts[0]
    share = (moment - first) / (stretches.end - first)
    return _short(100 * min(1.0, max(0.0, share)))


class _Axis:
    """The time axis."""

    def __init__(self, stretches: Stretches) -> None:
        self._stretches = stretches
        self.width = 100 / len(stretches.starts)

    def left(self, at: datetime) -> float:
        return place(at, self._stretches)

    def spots(self, series: Series) -> tuple[Span, ...]:
        pattern = "%d %b %H:%M:%S" if self._stretches.seconds < 60 else "%d %b %H:%M"
        texts = ((at, series.text_at(at)) for at in sorted(series.points))
        return tuple(
            Span(self.left(at), _short(self.width), f"{at.strftime(pattern)}: {text}") for at, text in texts if text
        )

    def ticks(self) -> tuple[Tick, ...]:
        first, end = self._stretches.starts[0], self._stretches.end
        step = plan_step((end - first).total_seconds(), TIME_TICKS)
        pattern = "%H:%M:%S" if step < 60 else "%H:%M" if step < 86400 else "%d %b"
        begin = -int(-first.timestamp() // step) * step
        moments = (datetime.fromtimestamp(begin + number * step, tz=timezone.utc) for number in range(TIME_TICKS + 1))
        return tuple(
            Tick(self.left(at), at.strftime(pattern)) for at in moments if at <= end - timedelta(seconds=step / 4)
        )


def _line(name: str, series: Series, axis: _Axis, most: float) -> Line:
    dots: list[tuple[float, float]] = []
    path, gap = "", True
    for at in sorted(series.points):
        value = series.points[at].get(name)
        if value is None:
            gap = True
            continue
        dots.append((_short(axis.left(at) + axis.width / 2), _short(100 - 100 * value / most)))
        path += f"{'M' if gap else 'L'}{dots[-1][0]} {dots[-1][1]}"
        gap = False
    return Line(name, path, tuple(dots))


def _value_ticks(marks: Sequence[float], word: Callable[[float], str]) -> tuple[Tick, ...]:
    return tuple(Tick(_short(100 - 100 * mark / marks[-1]), word(mark)) for mark in marks)


def _ticks(most: float, step: float) -> list[float]:
    return [number * step for number in range(max(1, math.ceil(most / step - 1e-9)) + 1)]


def _round(value: float) -> float:
    """1, 2 or 5 times a power of ten, at least `value`."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value * (1 - 1e-9))


def _short(value: float) -> float:
    return round(value, 2)
