"""Places in the log that the command line accepts."""

from datetime import datetime, timezone

import pytest

from dmdelta.engine.history.positions import time_of


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-11-21", datetime(2026, 11, 21, tzinfo=timezone.utc)),
        ("2026-11-21T10:00:00", datetime(2026, 11, 21, 10, tzinfo=timezone.utc)),
        ("2026-11-21T10:00:00Z", datetime(2026, 11, 21, 10, tzinfo=timezone.utc)),
        ("2026-11-21T10:00:00+02:00", datetime(2026, 11, 21, 8, tzinfo=timezone.utc)),
        ("0-1-7", None),
        ("0-10-70", None),
        ("2026-1-7", None),
        ("3e11fa47-71ca-11e1-9e33-c80aa9429562:7", None),
        ("binlog.000012:4711", None),
        ("batch:17", None),
    ],
)
def test_times(text, time):
    """Without a time zone in UTC. A date is a time, not a MariaDB GTID; a real GTID is none."""
    assert time_of(text) == time
