"""A task whose days are minutes: daily and weekly work of dmdelta and Delta happens often within a benchmark.

`shortened_environment` gives the variables with which each process of a task shortens its own constants at its start
(`sitecustomize`). The code that runs is the product's. `SHORTENED` says what is shorter, for the page.
"""

import os
from datetime import datetime, timedelta, timezone, tzinfo
from pathlib import Path

VARIABLE = "DMDELTA_BENCHMARK_BEGAN"
"""The start of the run (ISO 8601), from which its days are counted."""
DAY = timedelta(minutes=2)
"""The length of a day of bronze's partitions and of `maintenance.bronze-days`."""
CUT_SECONDS, LANDING_POLL_SECONDS = 0.2, 0.05
MAINTENANCE_POLL_SECONDS, SLOW_SECONDS = 5.0, 150.0
FREQUENT = {"log": timedelta(minutes=4), "files": timedelta(minutes=1), "vacuum": timedelta(minutes=2)}
SILVER = {"log": timedelta(minutes=6), "files": timedelta(minutes=2), "vacuum": timedelta(minutes=3)}
CHECKSUMS_KEPT = timedelta(minutes=1)
"""The retention of bronze and dm_meta, and of silver."""
SHORTENED = (
    f"- A day of bronze (`landed_on`, `maintenance.bronze-days: 1`) lasts {DAY.seconds / 60:.0f} minutes.",
    "- Commits of bronze and dm_meta are kept for 4 minutes (3 hours), of silver for 6 (12 hours), checksums a minute.",
    "- Replaced files of bronze and dm_meta are kept for a minute (90), of silver for 2 (8 hours).",
    "- Bronze and dm_meta are vacuumed every 2 minutes (an hour), silver every 3 (3 hours).",
    f"- The relay cuts a segment every {CUT_SECONDS} s (1 s).",
    f"- Landing lists segments every {LANDING_POLL_SECONDS} s (0.2 s).",
    "- Landed segments expire after three minutes (`purge.expires`).",
    f"- Maintenance polls every {MAINTENANCE_POLL_SECONDS:.0f} s (10 s), expiry every {SLOW_SECONDS:.0f} s (600 s).",
)
_HERE = Path(__file__).parent


def shortened_environment(began: datetime) -> dict[str, str]:
    """Variables with which each process of a task that starts with them has short days."""
    places = [str(_HERE), str(_HERE.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(places), VARIABLE: began.isoformat()}


def day_clock(began: datetime) -> type[datetime]:
    """`datetime`, except that `now` runs faster from `began` on: a day takes `DAY`."""

    class DayClock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return at_speed(began, datetime.now(timezone.utc)).astimezone(tz)

    return DayClock


def at_speed(began: datetime, now: datetime) -> datetime:
    """The time of a clock that was right at `began` and counts a day each `DAY`."""
    return began + (now - began) * (timedelta(days=1) / DAY)


def shorten_relay() -> None:
    """In the relay's process."""
    from dmdelta.source.relay import segmenter

    _set(segmenter, CUT_SECONDS=CUT_SECONDS)


def shorten_run(began: datetime) -> None:
    """In the process of `dmdelta run`."""
    from dmdelta.bronze import landing
    from dmdelta.engine.ingest import loop
    from dmdelta.engine.maintenance import background, retention
    from dmdelta.lakehouse import retention as kept
    from dmdelta.lakehouse.access import log_cleanup

    _set(background, POLL_SECONDS=MAINTENANCE_POLL_SECONDS, SLOW_SECONDS=SLOW_SECONDS)
    _set(log_cleanup, CHECKSUMS_KEPT=CHECKSUMS_KEPT)
    _set(loop, POLL_SECONDS=LANDING_POLL_SECONDS)
    for module in (landing, retention):
        _set(module, datetime=day_clock(began))
    for record, values in ((kept.FREQUENT, FREQUENT), (kept.SILVER, SILVER)):
        for name, value in values.items():
            assert hasattr(record, name), name
            object.__setattr__(record, name, value)  # the modules that use it have imported it


def _set(owner: object, **values: object) -> None:
    for name, value in values.items():
        assert hasattr(owner, name), name
        setattr(owner, name, value)
