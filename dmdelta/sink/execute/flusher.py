"""The sink's checkpoint: written in the background, from the newest snapshot mark that all workers have reached."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from dmdelta.failpoint import CrashPoint, reach
from dmdelta.logging import get_logger
from dmdelta.sink.execute.barriers import Ready, Snapshots
from dmdelta.sink.execute.progress import Progress
from dmdelta.sink.metrics import FlushCounts
from dmdelta.sink.plan.checkpoint import Checkpoint, PushedPoint
from dmdelta.sink.target.connection import TargetServer
from dmdelta.sink.target.metadata import FLUSHER, Metadata
from dmdelta.sink.target.target_session import TargetSession

log = get_logger(__name__)


@dataclass(slots=True)
class Flusher:
    """
    Attributes:
        interval: seconds between two flushes; may be changed while it runs.
        progress: what a checkpoint needs besides its point.
        failed: called when no checkpoint can be written.
    """

    server: TargetServer
    metadata: Metadata
    snapshots: Snapshots[PushedPoint | None]
    progress: Progress
    interval: float
    failed: Callable[[BaseException], None]
    counts: FlushCounts = field(default_factory=FlushCounts)
    flushed: Checkpoint | None = None
    _session: TargetSession = field(init=False)
    _ending: threading.Event = field(default_factory=threading.Event)
    _writing: threading.Lock = field(default_factory=threading.Lock)
    _thread: threading.Thread | None = None

    def __post_init__(self) -> None:
        self._session = TargetSession(self.server)

    def start(self) -> None:
        """Start flushing in the background."""
        self._thread = threading.Thread(target=self._run, name="sink-flush", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop the background thread and close the connection."""
        self._begin_end()
        if self._thread is not None:
            self._thread.join()
        with self._writing:
            self._session.close()

    def cut_off(self) -> None:
        """End the session of a write that does not end: the target rolls it back, and nothing more is written."""
        self._session.cut_off()

    def _begin_end(self) -> None:
        """Write nothing more in the background; a write in progress is not repeated."""
        self._ending.set()
        self._session.stopping.set()

    def flush_ready(self) -> None:
        """Write the newest ready snapshot, if it is newer than the last checkpoint.

        Raises:
            SinkError: it cannot be written. Fenced: another run has taken over.
        """
        ready = self.snapshots.newest_ready
        if ready is None:
            return
        with self._writing:
            # The last checkpoint of a run may be in progress: no other may follow it.
            checkpoint = self._newer(ready.at) if not self._ending.is_set() else None
            if checkpoint is not None:
                self._write(checkpoint)
                self.counts.spans = self.counts.spans.plus(time.monotonic() - ready.pushed)
        self._purge(ready)

    def _purge(self, flushed: Ready[PushedPoint | None]) -> None:
        """Forget the flushed snapshot and all older ones."""
        purged = self.snapshots.purge(flushed.id)
        if purged:
            log.info(
                "sink snapshots purged",
                source=self.metadata.source_id,
                snapshot=flushed.id,
                count=len(purged),
                position=str(flushed.at),
                ready_after_s=round(flushed.seconds, 3),
                flushed_after_s=round(time.monotonic() - flushed.pushed, 3),
                pushed=str(self.snapshots.newest_pushed),
            )

    def _newer(self, at: PushedPoint | None) -> Checkpoint | None:
        """The checkpoint at a point, if the global point or the table points have changed."""
        checkpoint = self.progress.checkpoint(at) if at is not None else None
        flushed = self.flushed
        if checkpoint is None or flushed is None or checkpoint.position > flushed.position:
            return checkpoint
        same = checkpoint.position < flushed.position or checkpoint.ahead() == flushed.ahead()
        return None if same else checkpoint

    def write(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint and delete the records before it. Raises as `flush_ready`."""
        with self._writing:
            self._write(checkpoint)

    def write_last(self, checkpoint: Checkpoint, *, attempts: int | None = None) -> None:
        """Write the last checkpoint of a run: no other follows. Raises as `flush_ready`.

        Args:
            attempts: None: as many as usual.
        """
        self._begin_end()
        with self._writing:
            self._session.stopping.clear()
            if attempts is not None:
                self._session.retry = replace(self._session.retry, attempts=attempts)
            self._write(checkpoint)

    def _write(self, checkpoint: Checkpoint) -> None:
        began = time.monotonic()
        self._session.attempt(lambda _: self._transaction(checkpoint))
        self.flushed = checkpoint
        self.counts.flushes += 1
        self.counts.seconds = time.monotonic() - began
        reach(CrashPoint.SINK_AFTER_FLUSH)
        log.info(
            "sink checkpoint flushed",
            source=self.metadata.source_id,
            position=str(checkpoint.position),
            exit_point=str(checkpoint.exit_point),
            reason=checkpoint.reason,
            seconds=round(self.counts.seconds, 3),
        )

    def mark_whole(self) -> None:
        """Declare that the records are complete from now on. Raises as `flush_ready`."""
        with self._writing:
            self._session.attempt(lambda _: self._mark())

    def _mark(self) -> None:
        connection = self._session.connection()
        self.metadata.fence(connection, FLUSHER)
        self.metadata.mark_whole(connection)
        connection.commit()

    def _transaction(self, checkpoint: Checkpoint) -> None:
        reach(CrashPoint.SINK_BEFORE_FLUSH)
        connection = self._session.connection()
        self.metadata.flush(connection, checkpoint)
        reach(CrashPoint.SINK_MID_FLUSH)
        self.metadata.drop_passed(connection, checkpoint.position)
        connection.commit()

    def _run(self) -> None:
        try:
            while not self._ending.is_set():
                began = time.monotonic()
                # In short waits: the interval may change meanwhile.
                while (left := began + self.interval - time.monotonic()) > 0:
                    if self._ending.wait(min(left, 1.0)):
                        return
                self.flush_ready()
        except BaseException as error:  # noqa: BLE001 - the sink raises it
            self.failed(error)
