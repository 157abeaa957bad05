"""A clock for tests of what happens after days."""

from datetime import datetime, timedelta, tzinfo


class DaysAgo(datetime):
    """What `datetime` was forty days ago."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.now(tz) - timedelta(days=40)
