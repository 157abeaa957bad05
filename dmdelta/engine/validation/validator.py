"""The validator of one source: rows that applied ranges have changed are compared with the source, beside all else.

Its trouble stops nothing else. docs/decisions/0011-validator.md has the reasons.
"""

import threading
import time
from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from dmdelta.config import ValidatorConfig
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.control.supervise import supervise
from dmdelta.engine.ingest.queue import RangeQueue
from dmdelta.engine.telemetry.stats import ValidatorFigures
from dmdelta.engine.validation.comparable_tables import ComparableTables
from dmdelta.engine.validation.state import Validation
from dmdelta.engine.validation.store import ValidatorStore
from dmdelta.errors import DmdeltaError, QualityError, Retryable, as_ours
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.source.connection import open_connection, query
from dmdelta.source.endpoint import Endpoint

log = get_logger(__name__)
WAIT_SECONDS = 0.5
GATHER_SECONDS = 10.0
"""Ranges are gathered for so long: each look costs the source and Spark something, and most rows settle meanwhile."""
GRACE_SECONDS = 5.0
END_SECONDS = 20.0
"""How long the end is waited for; after the first seconds what is under way is given up, to be done by the next run."""


@dataclass(slots=True)
class ValidatorLoop:
    """
    Attributes:
        spark: a session of its own.
        applied_log: the ranges that applying has done in this run.
        applied: how far applying was when the run began; None: nowhere yet.
        held: the tables that do not follow for now.
        failure: why it has stopped; everything else goes on.
    """

    spark: SparkSession
    side: SilverContext
    endpoint: Endpoint
    config: ValidatorConfig
    applied_log: RangeQueue
    applied: Position | None
    held: Callable[[], Collection[TableName]]
    interval: float = 30.0
    failure: DmdeltaError | None = None
    _validation: Validation | None = None
    _ahead: Position | None = None
    _thread: threading.Thread | None = None
    _looked: float = field(default_factory=time.monotonic)

    def start(self, stop: StopRequest) -> None:
        name = f"validate-{self.side.source_id}"
        self._thread = threading.Thread(target=self._run, args=(stop,), name=name, daemon=True)
        self._thread.start()

    @property
    def finished(self) -> bool:
        return self._thread is not None and not self._thread.is_alive()

    @property
    def reached(self) -> Position | None:
        """The changes before it have been looked at."""
        return self._validation.position if self._validation is not None else None

    @property
    def figures(self) -> ValidatorFigures | None:
        """None before it has begun."""
        known = self._validation
        if known is None:
            return None
        return ValidatorFigures(known.validated, len(known.pending), known.errors, self.failure is not None)

    def join(self, seconds: float = END_SECONDS) -> bool:
        """Wait for the end after a stop; False if it takes longer."""
        deadline = time.monotonic() + seconds
        while not self.finished and time.monotonic() < deadline and self._thread is not None:
            self._thread.join(GRACE_SECONDS)
            if not self.finished:
                self.spark.interruptAll()
        return self.finished

    def _run(self, stop: StopRequest) -> None:
        supervise(lambda: self._follow(stop), lambda error: self._may_retry(error, stop), stop)

    def _may_retry(self, error: Exception, stop: StopRequest) -> bool:
        if stop.requested:
            return False  # what was under way was given up
        if isinstance(error, (Retryable, QualityError)):  # too many rows differ: for now, mostly
            self._tell_trouble(str(error))
            return not self.applied_log.finished  # else the next run goes on
        self.failure = as_ours(error, "the validator")
        unknown, source_id = None if error is self.failure else error, self.side.source_id
        log.error("validator stopped, landing and silver go on", exc=unknown, source=source_id, why=str(self.failure))
        self._tell_trouble(str(self.failure))
        return False

    def _follow(self, stop: StopRequest) -> None:
        validation = self._opened()
        validation.open()
        self._ahead = max(filter(None, (self._ahead, self.applied)), default=None)
        with closing(open_connection(self.endpoint)) as connection:
            query(connection, "SET SESSION sql_mode = ''")  # no server's habit changes what a value's text is
            validation.looks.connect(connection, stop)
            while not stop.requested:
                ended = self.applied_log.finished
                self._take(validation)
                if ended or time.monotonic() - self._looked >= GATHER_SECONDS:
                    self._look(validation, stop, ends=ended)
                if ended or validation.is_due(self.interval):
                    validation.flush()
                if ended:
                    return
                validation.see_decisions()
            validation.flush()

    def _opened(self) -> Validation:
        if self._validation is None:
            side = self.side
            store = ValidatorStore(self.spark, side.lakehouse, side.task, side.source_id)
            looks = ComparableTables(self.spark, side, fast=self.config.mode == "fast")
            self._validation = Validation(self.spark, side, self.config, store, looks, self.held)
        return self._validation

    def _take(self, validation: Validation) -> None:
        """Take over what was applied; wait a moment if nothing was."""
        landed = self.applied_log.take(0, WAIT_SECONDS)
        while landed is not None:
            validation.begin_at(landed.begin)
            self._ahead = landed.end
            landed = self.applied_log.take(0, 0)

    def _look(self, validation: Validation, stop: StopRequest, *, ends: bool) -> None:
        self._looked = time.monotonic()
        validation.recheck()  # first, because it makes room
        if self._ahead is not None and not stop.requested:
            validation.look_up_to(self._ahead)
        if ends and not stop.requested:
            validation.recheck(at_once=True)

    def _tell_trouble(self, why: str) -> None:
        """For `dmdelta status`; the table may be the trouble itself."""
        log.warning("validator does not go on for now", source=self.side.source_id, why=why)
        if self._validation is not None:
            self._validation.tell_trouble(why)
