"""Serves the metrics of a run for Prometheus at `/metrics`."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from dmdelta.config.metrics import MetricsConfig
from dmdelta.engine.control.table import State
from dmdelta.engine.telemetry.counters import Tally
from dmdelta.engine.telemetry.lag import Sightings
from dmdelta.engine.telemetry.prometheus import counted, in_state, placed, retried, told
from dmdelta.engine.telemetry.stats import SourceMoment
from dmdelta.errors import ConfigError
from dmdelta.logging import get_logger

log = get_logger(__name__)
LOOK_SECONDS = 1.0
"""The resolution of a lag in seconds."""


class RunMetrics(Collector):
    """A run's metrics: its counters at the time of the request, its sources as of the last poll."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._moments: tuple[SourceMoment, ...] = ()
        self._sightings: dict[str, Sightings] = {}
        self._looked = -LOOK_SECONDS
        self._state = State.RUNNING
        self._retries = 0
        self._lock = threading.Lock()

    def look(self, read: Callable[[], Iterable[SourceMoment]]) -> None:
        """Poll the state of the sources, which `read` returns; may be called at any rate."""
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        self.see(read(), now)

    def see(self, moments: Iterable[SourceMoment], now: float) -> None:
        """Store the state of the sources."""
        with self._lock:
            self._moments = tuple(moments)
            for moment in self._moments:
                tracker = self._sightings.setdefault(moment.source_id, Sightings())
                if (end := moment.positions.get("server")) is not None:
                    tracker.saw(end, now)
                if moment.slowest is not None:
                    tracker.forget(moment.slowest)

    def tell(self, state: State) -> None:
        """Set the state of the task."""
        self._state = state
        self._retries += state is State.RETRYING

    def collect(self) -> Iterator[Metric]:
        """The metrics of `/metrics`."""
        with self._lock:
            moments, sightings = self._moments, dict(self._sightings)
        yield in_state(self._state)
        yield retried(self._retries)
        yield from counted(self._tally.counts())
        yield from placed(moments, sightings, time.monotonic())
        yield from told(moments)


@contextmanager
def serving_metrics(config: MetricsConfig | None, tally: Tally) -> Iterator[RunMetrics | None]:
    """Serve `/metrics` until the block ends; None if the spec does not enable it.

    Raises:
        ConfigError: the address is in use, or not one of this machine's.
    """
    if config is None:
        yield None
        return
    metrics = RunMetrics(tally)
    registry = CollectorRegistry()
    registry.register(metrics)
    ProcessCollector(registry=registry)
    try:
        server, thread = start_http_server(config.port, config.host, registry)
    except OSError as error:
        raise ConfigError(
            f"/metrics cannot be served at {config.host}:{config.port}: {error.strerror}",
            hint="correct metrics in the spec",
        ) from error
    log.info("serving metrics", url=f"http://{config.host}:{server.server_port}/metrics")
    try:
        yield metrics
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
