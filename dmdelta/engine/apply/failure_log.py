"""Reports rows that fail expectations while a task runs: in its log, and in dm_meta."""

from collections.abc import Mapping
from dataclasses import dataclass

from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.quality.results import Judged, Result, ResultStore, Scope
from dmdelta.quality.suite import Suites
from dmdelta.silver.apply.silver_context import SilverContext

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class FailureLog:
    """Receives the failures found when a range is applied to a table, or the table is reloaded."""

    store: ResultStore
    side: SilverContext
    suites: Suites

    def __call__(self, name: TableName, end: Position, judged: int, failures: Mapping[str, int]) -> None:
        """Report how many of the `judged` rows up to a position fail each expectation.

        Raises:
            LakehouseError: the result cannot be written.
        """
        target = self.side.table(name)
        failed = []
        for expectation in self.suites.of(target.route.name).row_wise:
            check, action = str(expectation), expectation.config.on_failure
            rows = failures.get(check)
            if rows is not None:
                log.warning("expectation failed", table=".".join(name), expectation=check, rows=rows, done=action)
                failed.append(Result(check, action, success=False, evaluated=judged, unexpected=rows))
        self.store.add(Judged(self.side.source_id, target.route.name, Scope.RUN, None, end), failed)
