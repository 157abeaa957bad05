"""A shifted clock for tests of expiry after days."""

from datetime import datetime, timedelta, tzinfo


class DaysAgo(datetime):
    """`datetime`, forty days ago."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.now(tz) - timedelta(days=40)
