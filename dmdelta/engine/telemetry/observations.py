"""What is observed of a run's sources once a second: their stages, the lag of each, and the rate of row changes."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from dmdelta.engine.telemetry.lag import LagTracker
from dmdelta.engine.telemetry.stats import SourceStats
from dmdelta.model.position import Position

POLL_SECONDS = 1.0
"""The resolution of a lag in seconds."""
RATE_SECONDS = 60.0
"""The period over which rates are averaged."""
SAMPLE_SECONDS = 10.0
SAMPLES = 360
"""An hour of samples, for the charts of the status page."""


@dataclass(slots=True)
class RateTracker:
    """The rate of a counter over the last minute. Not thread-safe."""

    _counts: deque[tuple[float, int]] = field(default_factory=deque)

    def saw(self, count: int, at: float) -> None:
        """Observe the counter at the time `at` (seconds of one clock)."""
        self._counts.append((at, count))
        while len(self._counts) > 2 and self._counts[1][0] <= at - RATE_SECONDS:
            self._counts.popleft()

    def per_second(self) -> float | None:
        """The average rate; None before the second observation."""
        if len(self._counts) < 2:
            return None
        (began, first), (ended, last) = self._counts[0], self._counts[-1]
        return (last - first) / (ended - began) if ended > began else None


class Observations:
    """The newest state of a run's sources. Thread-safe."""

    def __init__(self) -> None:
        self._stats: tuple[SourceStats, ...] = ()
        self._lags: dict[str, LagTracker] = {}
        self._rates: dict[str, RateTracker] = {}
        self._samples: dict[str, deque[tuple[float, float, float | None]]] = {}
        self._sampled = float("-inf")
        self._polled = -POLL_SECONDS
        self._lock = threading.Lock()

    def poll(self, read: Callable[[], Iterable[SourceStats]], rows: Callable[[], Mapping[str, int]]) -> None:
        """Observe the sources, unless that was done less than a second ago.

        Args:
            read: returns the state of the sources.
            rows: returns the number of row changes applied in this run, by source.
        """
        now = time.monotonic()
        if now - self._polled < POLL_SECONDS:
            return
        self._polled = now
        self.see(read(), now, rows())

    def see(self, stats: Iterable[SourceStats], now: float, rows: Mapping[str, int] | None = None) -> None:
        """Store the state of the sources at the time `now` (seconds of one clock)."""
        with self._lock:
            self._stats = tuple(stats)
            for each in self._stats:
                tracker = self._lags.setdefault(each.source_id, LagTracker())
                if (end := each.positions.get("server")) is not None:
                    tracker.saw(end, now)
                if each.slowest is not None:
                    tracker.forget(each.slowest)
                self._rates.setdefault(each.source_id, RateTracker()).saw((rows or {}).get(each.source_id, 0), now)
            if now - self._sampled >= SAMPLE_SECONDS:
                self._sampled = now
                self._sample(now)

    def _sample(self, now: float) -> None:
        for each in self._stats:
            lag = self._lags[each.source_id].lag(each.positions.get("applied"), now)
            sample = (time.time(), lag, self._rates[each.source_id].per_second())
            self._samples.setdefault(each.source_id, deque(maxlen=SAMPLES)).append(sample)

    def history(self) -> dict[str, list[tuple[float, float, float | None]]]:
        """Samples of the last hour by source: seconds since 1970, the lag in seconds, and row changes per second."""
        with self._lock:
            return {source_id: list(samples) for source_id, samples in self._samples.items()}

    def newest(self) -> tuple[tuple[SourceStats, ...], Mapping[str, LagTracker]]:
        """The newest state of the sources, and their lags."""
        with self._lock:
            return self._stats, dict(self._lags)

    def lag(self, source_id: str, reached: Position | None) -> float | None:
        """Seconds since there is log that a stage has not reached; None before the first observation."""
        with self._lock:
            tracker = self._lags.get(source_id)
        return tracker.lag(reached, time.monotonic()) if tracker is not None else None

    def rows_per_second(self, source_id: str) -> float | None:
        """Row changes applied per second over the last minute; None before the second observation."""
        with self._lock:
            tracker = self._rates.get(source_id)
            return tracker.per_second() if tracker is not None else None
