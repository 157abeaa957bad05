"""Flushes the points while the appliers continue: one thread per source."""

import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from dmdelta.checkpoint.points import FlushReason, Points, Snapshot, StoredPoints, TablePoint, changed_tables
from dmdelta.errors import DmdeltaError, StageFailed, as_ours
from dmdelta.logging import get_logger
from dmdelta.model.position import Position

log = get_logger(__name__)
END_SECONDS = 20.0
"""How long the end of a run waits for a write in progress and the last one."""


class Writer(Protocol):
    """Where a flush is written: `CheckpointStore`."""

    def write(self, snapshot: Snapshot, changed: Sequence[TablePoint], reason: FlushReason) -> None: ...


class Flusher:
    """Flushes the points of one source: at an interval, on DDL, at the end of the run; never if nothing changed.

    If the record says that the last run ended, the first handed-over range waits until the record says that a new run
    has started: otherwise a crash before the first flush would look like the previous run's orderly stop. A failed
    flush ends the thread; the next call, or the next hand-over, raises its error.
    """

    def __init__(
        self,
        writer: Writer,
        points: Points,
        stored: StoredPoints | None,
        interval: timedelta,
        gather: timedelta = timedelta(seconds=2),
    ) -> None:
        """Bind the flusher to `points`.

        Args:
            gather: how long a request waits for others, so that DDL of many tables results in one commit.
        """
        self._writer = writer
        self._points = points
        self._interval = interval.total_seconds()
        self._gather = gather.total_seconds()
        self._wake = threading.Condition()
        self._requested: FlushReason | None = None
        self._end_reason: FlushReason | None = None
        self._failure: DmdeltaError | None = None
        self._writing = threading.Lock()
        self._last_reason = stored.reason if stored else None
        self._flushed = points.snapshot(FlushReason.INTERVAL)
        self._flushed_exit = stored.exit_point if stored else None
        self._thread = threading.Thread(target=self._run, name=f"flush-{points.source_id}", daemon=True)
        points.before_apply(self._mark_running)

    def start(self) -> None:
        self._thread.start()

    def request(self, reason: FlushReason) -> None:
        """Request a flush soon, without waiting for it."""
        self.check()
        with self._wake:
            self._requested = reason
            self._wake.notify()

    def change_interval(self, interval: timedelta) -> None:
        """Takes effect immediately; the time waited so far counts."""
        with self._wake:
            if interval.total_seconds() != self._interval:
                self._interval = interval.total_seconds()
                self._wake.notify()

    @property
    def flushed(self) -> Position:
        """The global point's position as last written."""
        return self._flushed.global_point.position

    def check(self) -> None:
        """Raise the error of a failed flush."""
        if self._failure is not None:
            raise self._failure

    def end(self, reason: FlushReason) -> None:
        """Write the last checkpoint of the run, which ends the thread. Call it when no applier is active any more.

        Args:
            reason: STOP after an orderly end, PAUSE after an error.

        Raises:
            StageFailed: a write does not end.
            LakehouseError: a write has failed.
        """
        with self._wake:
            self._end_reason = reason
            self._wake.notify()
        self._thread.join(END_SECONDS)
        if self._thread.is_alive():
            raise _hangs()
        self.check()

    def _mark_running(self) -> None:
        self.check()
        if not self._record_has_ended():
            return  # without the lock: an applier must not wait for a write in progress
        with self._writing:
            if self._record_has_ended():
                self._write(self._points.snapshot(FlushReason.INTERVAL), FlushReason.INTERVAL)

    def _record_has_ended(self) -> bool:
        return self._last_reason is not None and self._last_reason.ends_the_run

    def _run(self) -> None:
        try:
            reason = FlushReason.INTERVAL
            while not reason.ends_the_run:
                reason = self._await_reason()
                self._flush(reason)
        except BaseException as error:  # noqa: BLE001 - raised to the engine at its next call
            self._failure = as_ours(error, self._thread.name)

    def _await_reason(self) -> FlushReason:
        """Wait for a request, and for others that follow it; for the interval; or for the end."""
        with self._wake:
            self._await_interval()
            if self._requested is not None:
                self._wake.wait_for(lambda: self._end_reason is not None, self._gather)
            reason, self._requested = self._end_reason or self._requested or FlushReason.INTERVAL, None
            return reason

    def _await_interval(self) -> None:
        """Wait for a request, the end, or the interval, which may change meanwhile."""
        began = time.monotonic()
        while self._end_reason is None and self._requested is None:
            left = began + self._interval - time.monotonic()
            if left <= 0:
                return
            self._wake.wait(left)

    def _flush(self, reason: FlushReason) -> None:
        # At the end, an applier that still writes hangs: the run has waited for it.
        while not self._writing.acquire(timeout=0.1):
            if self._end_reason is not None:
                raise _hangs()
        try:
            snapshot = self._points.snapshot(reason)
            if self._has_changes(snapshot, reason):
                self._write(snapshot, reason)
        finally:
            self._writing.release()

    def _has_changes(self, snapshot: Snapshot, reason: FlushReason) -> bool:
        if snapshot.global_point != self._flushed.global_point or changed_tables(snapshot, self._flushed.tables):
            return True
        if not reason.ends_the_run:
            return False
        if self._last_reason is None and snapshot.exit_point in (None, snapshot.global_point):
            return False  # no range was ever handed to the appliers
        return reason is not self._last_reason or snapshot.exit_point != self._flushed_exit

    def _write(self, snapshot: Snapshot, reason: FlushReason) -> None:
        changed = changed_tables(snapshot, self._flushed.tables)
        self._writer.write(snapshot, changed, reason)
        self._flushed, self._flushed_exit, self._last_reason = snapshot, snapshot.exit_point, reason
        position = str(snapshot.global_point.position)
        log.info("checkpoint flushed", source=snapshot.source_id, reason=reason.value, position=position)


def _hangs() -> StageFailed:
    hint = "kill the process and start it again: no data is lost"
    return StageFailed("the checkpoint write did not end", hint=hint)
