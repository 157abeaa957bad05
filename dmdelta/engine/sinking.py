"""The sink's loop of one source: landed ranges go to the target, at its own pace. Its trouble stops nothing else."""

import threading
import time
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from dmdelta.bronze.landing import Landed, LandingSource, landed_batches, newest_landed
from dmdelta.bronze.retention import expired_to
from dmdelta.bronze.watermarks import exact_positions
from dmdelta.config import SinkConfig, TaskSpec
from dmdelta.engine.beside import run_beside
from dmdelta.engine.landed_log import LandedLog
from dmdelta.engine.stop import StopRequest
from dmdelta.errors import DmdeltaError, Retryable, SinkError, as_ours
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.sink.connection import TargetServer
from dmdelta.sink.metrics import SinkMetrics
from dmdelta.sink.opening import open_sink
from dmdelta.sink.settings import SinkSettings, SinkSource
from dmdelta.sink.sink import Sink

log = get_logger(__name__)
WAIT_SECONDS = 0.5
RANGE_BYTES = 256 << 20
TELL_SECONDS = 30.0
"""How often the log tells the sink's figures."""
END_SECONDS = 20.0


@dataclass(slots=True)
class SinkingLoop:
    """
    Attributes:
        landed_log: what landing hands over in this run.
        landed: bronze's newest batch when the run began.
        failure: why the sink has stopped; everything else goes on.
    """

    spark: SparkSession
    landing: LandingSource
    source: SinkSource
    settings: SinkSettings
    landed_log: LandedLog
    landed: Landed | None
    failure: DmdeltaError | None = None
    interval: float = 30.0
    _sink: Sink | None = None
    _thread: threading.Thread | None = None
    _told: float = field(default_factory=time.monotonic)

    def start(self, stop: StopRequest) -> None:
        name = f"sink-{self.source.source_id}"
        self._thread = threading.Thread(target=self._run, args=(stop,), name=name, daemon=True)
        self._thread.start()

    @property
    def finished(self) -> bool:
        return self._thread is not None and not self._thread.is_alive()

    @property
    def metrics(self) -> SinkMetrics | None:
        """The figures of the moment, None before the target was reached."""
        return self._sink.metrics() if self._sink is not None else None

    def join(self, seconds: float = END_SECONDS) -> bool:
        """Wait for the end after a stop; False if it takes longer."""
        if self._thread is not None:
            self._thread.join(seconds)
        return self.finished

    def change_interval(self, seconds: float) -> None:
        """Write the checkpoint so often from now on."""
        self.interval = seconds
        if self._sink is not None:
            self._sink.flusher.interval = seconds

    def _run(self, stop: StopRequest) -> None:
        run_beside(lambda: self._follow(stop), self._goes_on, stop)

    def _goes_on(self, error: Exception) -> bool:
        source_id = self.source.source_id
        if isinstance(error, Retryable):
            log.warning("sink failed, goes on by itself", source=source_id, why=str(error))
            return True
        self.failure = as_ours(error, "the sink")
        unknown = None if error is self.failure else error
        log.error("sink stopped, landing and silver go on", exc=unknown, source=source_id, why=str(self.failure))
        return False

    def _follow(self, stop: StopRequest) -> None:
        landed = newest_landed(self.spark, self.landing)
        self._sink = sink = open_sink(
            self.spark, self.landing.bronze, self.source, self.settings, landed.end if landed else None
        )
        sink.flusher.interval = self.interval
        orderly = False
        try:
            self._assert_kept(sink.position)
            # Only now: what lands from here on comes through the queue, or is in the list twice.
            for batch in landed_batches(self.spark, self.landing, sink.position) if landed else ():
                if not self._apply(sink, batch, stop):
                    break
            while not stop.requested and not self.landed_log.finished:
                batch_ahead = self.landed_log.take(RANGE_BYTES, WAIT_SECONDS)
                if batch_ahead is not None and not self._apply(sink, batch_ahead, stop):
                    break
                sink.dispatcher.check()
                self._tell()
            orderly = True
        finally:
            sink.end(orderly=orderly)

    def _assert_kept(self, position: Position | None) -> None:
        expired = expired_to(self.spark, self.landing)
        if expired is not None and (position is None or position <= expired):
            raise SinkError(
                f"the target has row changes up to {position}, and those up to {expired} have expired from bronze",
                hint="feed this target by a task of its own, with another name and lakehouse root: it loads all",
            )

    def _apply(self, sink: Sink, landed: Landed, stop: StopRequest) -> bool:
        if sink.position is not None and landed.end <= sink.position:
            return True
        if landed.safe_until is not None:  # a full load, which is in bronze by now, may have seen it
            found = exact_positions(self.spark, self.landing.bronze, self.source.source_id)
            sink.read_at = {name: at for name, at in found.items() if at.epoch == landed.end.epoch}
        return sink.apply(landed.begin, landed.end, lambda: stop.requested, landed.safe_until)

    def _tell(self) -> None:
        if self._sink is None or time.monotonic() - self._told < TELL_SECONDS:
            return
        self._told = time.monotonic()
        figures = self._sink.metrics()
        log.info(
            "sink",
            source=figures.source_id,
            pushed=figures.pushed,
            ready=figures.ready,
            flushed=figures.flushed,
            flush_s=round(figures.flush_seconds, 3),
            keys=figures.keys,
            keys_added=figures.keys_added,
            keys_reset=figures.resets,
            queued=figures.queued,
            rows=[worker.rows for worker in figures.workers],
            statements=[worker.statements for worker in figures.workers],
        )


def sink_settings(spec: TaskSpec, config: SinkConfig) -> SinkSettings:
    """What the spec says."""
    return SinkSettings(
        server=target_server(config),
        metadata=config.metadata,
        workers=config.worker_count,
        batch=config.batch,
        compact=config.compact,
        multiple_rows=config.multiple_rows,
        synchronous=config.flush == "sync",
        safe_mode=config.safe_mode or spec.syncer.safe_mode,
        flush_interval=spec.syncer.checkpoint_flush_interval.total_seconds(),
    )


def target_server(config: SinkConfig) -> TargetServer:
    """Where the target is."""
    return TargetServer(
        config.host,
        config.port,
        config.user,
        config.password.get_secret_value(),
        tidb=config.kind == "tidb",
        foreign_key_checks=config.foreign_key_checks,
        tls=config.security.tls if config.security else None,
    )
