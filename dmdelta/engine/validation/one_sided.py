"""Tables that only the source or only silver has: whether that is a difference, as of one position."""

import time
from contextlib import closing
from dataclasses import dataclass

from dmdelta.checkpoint import load_points
from dmdelta.engine.task.source import TaskSource
from dmdelta.engine.validation.landed_position import POLL_SECONDS, await_landed
from dmdelta.engine.validation.results import Outcome, Validated, ValidateRequest, shown
from dmdelta.errors import QualityError
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.quality.reconcile import count_query
from dmdelta.rules import Action
from dmdelta.rules.comparable_rows import ComparableRows
from dmdelta.silver.history.repair import table_version
from dmdelta.silver.schema.range_profile import table_events
from dmdelta.silver.table.table import Condition, silver_condition
from dmdelta.source.connection import open_connection
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.server import server_position
from dmdelta.source.snapshot.consistent_read import open_consistent

TRIES = 10


@dataclass(frozen=True, slots=True)
class OneSided:
    """A table that either the source or silver lacks."""

    source: TaskSource
    endpoint: Endpoint
    name: TableName
    request: ValidateRequest

    def silver_alone(self) -> Validated:
        """Compare a table that the source lacks.

        Raises:
            NotLanded: bronze does not reach the source's position.
            DmdeltaError: silver or bronze cannot be read, or silver does not reach the source's position.
        """
        context, spark = self.source.context, self.source.task.spark
        target = context.table(self.name)
        if context.rules.decide(self.name, ("drop table",), "DROP TABLE") is Action.IGNORE:
            return self._line(Outcome.EXCLUDED, "dropped in the source; a filter of the spec ignores DROP TABLE")
        with closing(open_connection(self.endpoint)) as connection:
            at = server_position(connection)
        position = await_landed(self.source, at, self.request.wait)
        for _ in range(TRIES):
            if silver_condition(spark, target) is Condition.DROPPED:
                return self._line(Outcome.EXCLUDED, "dropped in the source; silver's table is marked as dropped")
            if not self._has_events(table_version(spark, target).position, position):
                return self._left_over(position)
            time.sleep(POLL_SECONDS)
        raise QualityError(
            f"the source has no {shown(self.name)}, and silver lags behind the source", hint="run the task"
        )

    def _left_over(self, position: Position) -> Validated:
        target, spark = self.source.context.table(self.name), self.source.task.spark
        with wrapped(target.place, "reading"):
            rows = spark.table(target.place)
            count = rows.where(target.own_rows).count() if target.merged else rows.count()
        if target.merged and not count:
            return self._line(Outcome.EXCLUDED, "dropped in the source; the merged table has no rows of it")
        return Validated(
            source=self.source.config.source_id,
            table=shown(self.name),
            status=Outcome.DIFFERS,
            reason="silver has the table; the source has none, or its account lacks the SELECT privilege",
            position=position,
            rows=0,
            silver_rows=count,
            extra=count,
        )

    def source_alone(self, compared: ComparableRows) -> Validated | None:
        """Compare a table that silver lacks; None if silver has it in the meantime.

        Raises:
            NotLanded: bronze does not reach the source's position.
            DmdeltaError: the source or bronze cannot be read, or silver does not reach the source's position.
        """
        task, context = self.source.task, self.source.context
        with open_consistent(self.endpoint, self.name, context.flavor, 1) as table:
            position = await_landed(self.source, table.position, self.request.wait)
            left_out = f"NOT ({compared.source_condition})" if compared.expressions else ""
            ((count,),) = table.ask([(count_query(table.name, left_out), ())])[0]
        for _ in range(TRIES):
            if silver_condition(task.spark, context.table(self.name)) is Condition.PRESENT:
                return None
            stored = load_points(task.spark, task.lakehouse, task.spec.name, context.source_id)
            if stored is not None and not self._has_events(stored.global_point.position, position):
                return self._missing(position, int(count))
            time.sleep(POLL_SECONDS)
        raise QualityError(f"silver has no table of {shown(self.name)} yet", hint="run the task")

    def _missing(self, position: Position, count: int) -> Validated:
        if not count:
            reason = "the source's table is empty; silver creates the table with the first row"
            return self._line(Outcome.EXCLUDED, reason)
        return Validated(
            source=self.source.config.source_id,
            table=shown(self.name),
            status=Outcome.DIFFERS,
            reason="silver has no such table: neither the log nor a snapshot has its rows "
            f"(dmdelta snapshot SPEC --table {shown(self.name)})",
            position=position,
            rows=count,
            silver_rows=0,
            missing=count,
        )

    def _has_events(self, begin: Position, end: Position) -> bool:
        if begin >= end:
            return False
        events = table_events(self.source.task.spark, self.source.context, self.name, begin, end)
        return bool(events.row_count or events.ddl)

    def _line(self, status: Outcome, reason: str) -> Validated:
        return Validated(source=self.source.config.source_id, table=shown(self.name), status=status, reason=reason)
