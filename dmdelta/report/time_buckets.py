"""Splits a window of time into buckets: few enough for a chart, and of a round length."""

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

MOST_STRETCHES = 60
STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Stretches:
    """The time buckets of [since, until], aligned to multiples of their length.

    Attributes:
        seconds: the length of one bucket.
    """

    since: datetime
    until: datetime
    seconds: int

    @property
    def starts(self) -> tuple[datetime, ...]:
        """The start of each bucket."""
        first, length = self.begin_of(self.since), timedelta(seconds=self.seconds)
        count = (self.begin_of(self.until) - first) // length + 1
        return tuple(first + number * length for number in range(count))

    @property
    def end(self) -> datetime:
        """The end of the last bucket."""
        return self.begin_of(self.until) + timedelta(seconds=self.seconds)

    def begin_of(self, moment: datetime) -> datetime:
        """The start of the bucket that contains a moment."""
        whole = int(moment.timestamp()) // self.seconds * self.seconds
        return datetime.fromtimestamp(whole, tz=timezone.utc)


def stretches_of(since: datetime, until: datetime) -> Stretches:
    """The time buckets of a window."""
    return Stretches(since, until, plan_step((until - since).total_seconds(), MOST_STRETCHES))


def plan_step(seconds: float, most: int) -> int:
    """The shortest length of `STEPS`, or whole number of days, of which at most `most` cover `seconds`."""
    day = STEPS[-1]
    return next((step for step in STEPS if step * most >= seconds), -int(-seconds // (most * day)) * day)
