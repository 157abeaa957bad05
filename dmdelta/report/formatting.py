"""Formats times, durations and numbers for display."""

from datetime import datetime

_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))
_THOUSANDS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))

SCOPES = {
    "run": "rows on their way to silver",
    "range": "a range, in silver",
    "table": "all of silver",
    "replay": "a range, rebuilt from bronze",
    "replay-check": "the result of a replay",
    "images": "the row images of a range",
}
"""Which rows were judged, by `dmdelta.quality.results.Scope`."""


def duration_of(seconds: float) -> str:
    """`0.4 s`, `12 s`, `3.5 min`, `2 d`."""
    if 0 < seconds < 1:
        return f"{seconds:.1g} s" if seconds < 0.1 else f"{seconds:.1f} s"
    # A value that would be rounded up to the next unit is shown in that unit.
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= 0.9995 * size), (1.0, "s"))
    return f"{_figures(seconds / size)} {unit}"


def count_of(number: float) -> str:
    """`950`, `1.2k`, `3M`: for an axis."""
    size, unit = next(((size, unit) for size, unit in _THOUSANDS if number >= size), (1.0, ""))
    return f"{_figures(number / size)}{unit}"


def whole_of(number: float) -> str:
    """`1,234,567`."""
    return f"{number:,.0f}"


def moment_of(moment: datetime | None) -> str:
    """`22 Nov 2026 14:05:09`, in UTC; '' for none."""
    return moment.strftime("%d %b %Y %H:%M:%S") if moment is not None else ""


def minute_of(moment: datetime) -> str:
    """`22 Nov 14:05`, in UTC."""
    return moment.strftime("%d %b %H:%M")


def _figures(value: float) -> str:
    """One decimal below 100, where it is not 0."""
    text = f"{value:.1f}" if value < 99.95 else f"{value:.0f}"
    return text.removesuffix(".0")
