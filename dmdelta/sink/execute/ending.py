"""The end of a run: the target at a transaction boundary if possible, and a checkpoint with the exit point."""

from collections.abc import Mapping
from dataclasses import dataclass

from dmdelta.errors import DmdeltaError
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.sink.execute.dispatcher import Dispatcher
from dmdelta.sink.execute.flusher import Flusher
from dmdelta.sink.execute.progress import Progress
from dmdelta.sink.plan.checkpoint import ERROR, STOP, PushedPoint, plan_ended

log = get_logger(__name__)
BOUNDARY_SECONDS = 10.0
"""How long a pause or a stop waits for the target to reach a transaction boundary, as in DM."""
ENDING_SECONDS = 5.0
LAST_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Ending:
    """Ends a run of the sink."""

    dispatcher: Dispatcher
    flusher: Flusher
    progress: Progress

    def end(self, point: PushedPoint | None, *, orderly: bool) -> bool:
        """Drain the workers, write the checkpoint and stop all threads.

        Args:
            point: the transaction boundary up to which everything was handed over; None: nothing was.
            orderly: no error occurred.

        Returns:
            Whether the target is at a boundary: False after an error or a timeout.

        Raises:
            DmdeltaError: a worker fails, or the checkpoint of an orderly end cannot be written.
        """
        drained = False
        try:
            if orderly and point is not None:
                drained = self.dispatcher.drain(point, BOUNDARY_SECONDS)
                if not drained:
                    log.warning("the target is not at a transaction boundary", waited_seconds=BOUNDARY_SECONDS)
        except DmdeltaError:
            orderly = False
            raise
        finally:
            try:
                if drained and point is not None:
                    self._write_boundary(point)
                else:
                    self._write_exit_point(orderly=orderly)
            finally:
                self.dispatcher.end(ENDING_SECONDS)
                self.flusher.end()
        return drained

    def _write_boundary(self, point: PushedPoint) -> None:
        checkpoint = self.progress.checkpoint(point, STOP)
        assert checkpoint is not None, "a boundary is a transaction's end"
        self.flusher.write_last(checkpoint)

    def _write_exit_point(self, *, orderly: bool) -> None:
        """Write what was executed and up to where more may have been; after an error only if the target allows it."""
        if not orderly:
            self.dispatcher.settle(BOUNDARY_SECONDS)
        ended, flushed = self.dispatcher.end(ENDING_SECONDS), self.flusher.flushed
        point = self._ready()
        if point is None:
            return
        checkpoint = self.progress.checkpoint(
            point,
            STOP if orderly else ERROR,
            tables=self._tables(point, ended=ended),
            about_to=flushed.about_to if flushed is not None and flushed.position == point.position else None,
        )
        if checkpoint is None:
            return
        try:
            self.flusher.write_last(checkpoint, attempts=LAST_ATTEMPTS)
        except DmdeltaError as error:
            log.warning("the exit point was not written: the next run determines it", why=str(error))

    def _ready(self) -> PushedPoint | None:
        """The newest point that all workers have reached, or the newest checkpoint."""
        ready, flushed = self.dispatcher.snapshots.newest_ready, self.flusher.flushed
        point = ready.at if ready is not None else None
        if flushed is None or (point is not None and point.position is not None and point.position > flushed.position):
            return point
        tables = max(flushed.position, point.tables) if point is not None else flushed.position
        return PushedPoint(flushed.position, tables)

    def _tables(self, point: PushedPoint, *, ended: bool) -> Mapping[TableName, Position]:
        known, pushed = self.progress.known_tables(), self.dispatcher.snapshots.newest_pushed
        missing = self.progress.sources(self.dispatcher.unexecuted) if ended else None
        certain = plan_ended(point, pushed.tables if pushed is not None else None, known, missing)
        return {name: max(at, certain[name]) for name, at in known.items()}
