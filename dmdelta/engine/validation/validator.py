"""The validator of one source: compares the rows that applied ranges changed with the source, in its own thread.

Its errors stop no other component. docs/decisions/0011-validator.md has the reasons.
"""

import time
from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from dmdelta.config import ValidatorConfig
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.control.supervise import SupervisedLoop
from dmdelta.engine.ingest.queue import RangeQueue
from dmdelta.engine.telemetry.stats import ValidatorFigures
from dmdelta.engine.validation.comparable_tables import ComparableTables
from dmdelta.engine.validation.state import Validation
from dmdelta.engine.validation.store import ValidatorStore
from dmdelta.errors import DmdeltaError, QualityError, Retryable, as_ours
from dmdelta.lakehouse.jvm.cancellation import cancel_jobs
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.source.connection import open_connection, query
from dmdelta.source.endpoint import Endpoint

log = get_logger(__name__)
WAIT_SECONDS = 0.5
GATHER_SECONDS = 10.0
"""Ranges are collected this long: a comparison loads the source and Spark, and most rows become equal meanwhile."""
GRACE_SECONDS = 5.0
"""After a stop, the running comparison may take this long. The next run repeats a cancelled one."""


@dataclass(slots=True)
class ValidatorLoop(SupervisedLoop):
    """
    Attributes:
        spark: a session of its own.
        applied_ranges: the ranges that were applied in this run.
        applied: the position up to which silver was applied when the run started; None: nothing was.
        held: returns the tables that are paused.
        failure: why it has stopped; everything else continues.
    """

    spark: SparkSession
    context: SilverContext
    endpoint: Endpoint
    config: ValidatorConfig
    applied_ranges: RangeQueue
    applied: Position | None
    held: Callable[[], Collection[TableName]]
    interval: float = 30.0
    failure: DmdeltaError | None = None
    _validation: Validation | None = None
    _ahead: Position | None = None
    _compared_at: float = field(default_factory=time.monotonic)

    @property
    def reached(self) -> Position | None:
        """Changes before it were compared."""
        return self._validation.position if self._validation is not None else None

    @property
    def trouble(self) -> str | None:
        """Why there is no progress; None if there is."""
        if self.failure is not None:
            return str(self.failure)
        return self._validation.trouble if self._validation is not None else None

    @property
    def figures(self) -> ValidatorFigures | None:
        """The validator's figures; None before it has started."""
        known = self._validation
        if known is None:
            return None
        return ValidatorFigures(known.validated, len(known.pending), known.errors, self.failure is not None)

    def join(self, seconds: float) -> bool:
        """Wait for the end after a stop; after `GRACE_SECONDS` cancel the running comparison. False after a timeout."""
        deadline = time.monotonic() + seconds
        # Not super(): a dataclass with slots is another class than the one that this method refers to.
        while not SupervisedLoop.join(self, GRACE_SECONDS) and time.monotonic() < deadline:
            cancel_jobs(self.spark)
        return self.finished

    def _should_retry(self, error: Exception, stop: StopRequest) -> bool:
        if stop.requested:
            return False  # the running comparison was cancelled
        if isinstance(error, (Retryable, QualityError)):  # too many rows differ, mostly temporarily
            log.warning("validator paused, retrying automatically", source=self.context.source_id, why=str(error))
            self._publish_trouble(str(error))
            return not self.applied_ranges.closed  # the run only waits for it: the next one resumes
        self.failure = as_ours(error, "the validator")
        unknown, source_id = None if error is self.failure else error, self.context.source_id
        log.error(
            "validator stopped, landing and silver continue", exc=unknown, source=source_id, why=str(self.failure)
        )
        self._publish_trouble(str(self.failure))
        return False

    def _run(self, stop: StopRequest) -> None:
        try:
            super(ValidatorLoop, self)._run(stop)  # dataclasses with slots lack super()
        finally:
            self.applied_ranges.abandon()

    def _follow(self, stop: StopRequest) -> None:
        validation = self._opened()
        validation.open()
        self._ahead = max(filter(None, (self._ahead, self.applied)), default=None)
        with closing(open_connection(self.endpoint)) as connection:
            query(connection, "SET SESSION sql_mode = ''")  # no sql_mode changes the text of values
            validation.looks.connect(connection, stop)
            while not stop.requested:
                ended = self.applied_ranges.finished
                self._take(validation)
                if ended or time.monotonic() - self._compared_at >= GATHER_SECONDS:
                    self._compare(validation, stop, ends=ended)
                if ended or validation.is_due(self.interval):
                    validation.flush()
                if ended:
                    return
                validation.load_decisions()
            validation.flush()

    def _opened(self) -> Validation:
        if self._validation is None:
            context = self.context
            store = ValidatorStore(self.spark, context.lakehouse, context.task, context.source_id)
            looks = ComparableTables(self.spark, context, fast=self.config.mode == "fast")
            self._validation = Validation(self.spark, context, self.config, store, looks, self.held)
        return self._validation

    def _take(self, validation: Validation) -> None:
        """Take the applied ranges from the queue; waits shortly if there are none."""
        landed = self.applied_ranges.take(0, WAIT_SECONDS)
        while landed is not None:
            validation.begin_at(landed.begin)
            self._ahead = landed.end
            landed = self.applied_ranges.take(0, 0)

    def _compare(self, validation: Validation, stop: StopRequest, *, ends: bool) -> None:
        self._compared_at = time.monotonic()
        validation.recheck()  # first, because it reduces the pending rows
        if self._ahead is not None and not stop.requested:
            validation.look_up_to(self._ahead)
        if ends and not stop.requested:
            validation.recheck(at_once=True)

    def _publish_trouble(self, why: str) -> None:
        """Publish the error for `dmdelta status`, if dm_meta can be written."""
        if self._validation is not None:
            self._validation.tell_trouble(why)
