"""Rows that fail while a task runs: told in its log, and written down in dm_meta."""

from dataclasses import dataclass

from dmdelta.engine.requests import SilverSide
from dmdelta.logging import get_logger
from dmdelta.quality.results import Judged, Result, ResultStore, Scope
from dmdelta.quality.suite import Suites
from dmdelta.silver.request import ApplyResult

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class FailureLog:
    """Takes what applying a range to a table has found."""

    store: ResultStore
    side: SilverSide
    suites: Suites

    def __call__(self, result: ApplyResult) -> None:
        """
        Raises:
            LakehouseError: it cannot be written down.
        """
        source, name = self.side.source_id, (result.schema, result.table)
        target = self.side.table(name)
        failed = []
        for expectation in self.suites.of(target.route.name).row_wise:
            check, action = str(expectation), expectation.config.on_failure
            rows = result.failures.get(check)
            if rows is not None:
                log.warning("rows fail", table=".".join(name), expectation=check, rows=rows, done=action)
                failed.append(Result(check, action, success=False, evaluated=result.row_count, unexpected=rows))
        self.store.add(Judged(source, target.route.name, Scope.RUN, None, result.end), failed)
