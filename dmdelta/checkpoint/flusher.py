"""Writing the points down while the appliers go on: one thread a source."""

import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from dmdelta.checkpoint.points import FlushReason, Points, Snapshot, StoredPoints, TablePoint, changed_tables
from dmdelta.logging import get_logger

log = get_logger(__name__)


class Writer(Protocol):
    """Where a flush goes: `CheckpointStore`."""

    def write(self, snapshot: Snapshot, changed: Sequence[TablePoint], reason: FlushReason) -> None: ...


class Flusher:
    """Flushes the points of one source: at an interval, on DDL, when the run ends; never when nothing changed.

    A failed flush ends the thread; the next call raises its error.
    """

    def __init__(self, writer: Writer, points: Points, stored: StoredPoints | None, interval: timedelta) -> None:
        self._writer = writer
        self._points = points
        self._interval = interval.total_seconds()
        self._wake = threading.Condition()
        self._wanted: FlushReason | None = None
        self._ending = False
        self._failure: BaseException | None = None
        self._writing = threading.Lock()
        self._last_reason = stored.reason if stored else None
        self._flushed = points.snapshot(FlushReason.INTERVAL)
        self._flushed_exit = stored.exit_point if stored else None
        self._thread = threading.Thread(target=self._run, name=f"flush-{points.source_id}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def mark_running(self) -> None:
        """Before the first range is applied: if the record says that the run ended, say that another one runs.

        Else a crash before the first flush would look like the last run's orderly stop. Writes at most once.
        """
        self.check()
        with self._writing:
            if self._last_reason is not None and self._last_reason.ends_the_run:
                self._write(self._points.snapshot(FlushReason.INTERVAL), FlushReason.INTERVAL)

    def request(self, reason: FlushReason) -> None:
        """Flush soon. Does not wait."""
        self.check()
        with self._wake:
            self._wanted = reason
            self._wake.notify()

    def check(self) -> None:
        """Raise the error of a flush that failed."""
        if self._failure is not None:
            raise self._failure

    def end(self, reason: FlushReason) -> None:
        """End the thread and write the last checkpoint of the run. Call it when no applier is at work any more.

        Args:
            reason: STOP after an orderly end, PAUSE after an error.
        """
        with self._wake:
            self._ending = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join()
        self.check()
        self._flush(reason)

    def _run(self) -> None:
        try:
            while True:
                with self._wake:
                    if self._wanted is None and not self._ending:
                        self._wake.wait(self._interval)
                    reason, self._wanted = self._wanted or FlushReason.INTERVAL, None
                    if self._ending:
                        return
                self._flush(reason)
        except BaseException as error:  # noqa: BLE001 - raised to the engine at its next call
            self._failure = error

    def _flush(self, reason: FlushReason) -> None:
        with self._writing:
            snapshot = self._points.snapshot(reason)
            if self._says_something_new(snapshot, reason):
                self._write(snapshot, reason)

    def _says_something_new(self, snapshot: Snapshot, reason: FlushReason) -> bool:
        if snapshot.global_point != self._flushed.global_point or changed_tables(snapshot, self._flushed.tables):
            return True
        if not reason.ends_the_run:
            return False
        if self._last_reason is None and snapshot.exit_point in (None, snapshot.global_point):
            return False  # nothing was ever handed to the appliers
        return reason is not self._last_reason or snapshot.exit_point != self._flushed_exit

    def _write(self, snapshot: Snapshot, reason: FlushReason) -> None:
        changed = changed_tables(snapshot, self._flushed.tables)
        self._writer.write(snapshot, changed, reason)
        self._flushed, self._flushed_exit, self._last_reason = snapshot, snapshot.exit_point, reason
        position = str(snapshot.global_point.position)
        log.info("checkpoint flushed", source=snapshot.source_id, reason=reason.value, position=position)
