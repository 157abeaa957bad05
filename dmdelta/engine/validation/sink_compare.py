"""Compares one source table with its table in the sink's target.

The sink keeps writing to the target, so rows may be newer there than in the source's snapshot. Rows whose keys the log
has changed in the meantime are compared again. docs/decisions/0009-reconciliation.md has the reasons.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from dmdelta.bronze.progress import newest_landed
from dmdelta.engine.snapshot.in_target import tables_missing_rows
from dmdelta.engine.task.source import TaskSource
from dmdelta.engine.validation.landed_position import POLL_SECONDS, await_landed
from dmdelta.engine.validation.results import (
    Against,
    Outcome,
    RowDifference,
    Validated,
    ValidateRequest,
    outcome_of,
    shown,
)
from dmdelta.engine.validation.row_compare import Range, changed_keys
from dmdelta.engine.validation.server_rows import Differing, ServerRows
from dmdelta.engine.validation.sink_tables import SinkTable
from dmdelta.errors import QualityError
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.mysql_sql import quoted_name
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema
from dmdelta.quality.reconcile import Comparison, Kind, count_query
from dmdelta.quality.server_tables import plan_server_comparison
from dmdelta.silver.schema.range_profile import TableEvents, table_events
from dmdelta.sink.startup import flushed_position
from dmdelta.sink.target.connection import TargetServer
from dmdelta.sink.target.metadata import Metadata
from dmdelta.sink.target.snapshot import TargetSnapshot, open_target_snapshot
from dmdelta.source.catalog import read_schemas
from dmdelta.source.connection import open_connection
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.server import server_position
from dmdelta.source.snapshot.consistent_read import ConsistentTable, open_consistent

TRIES = 10


@dataclass(frozen=True, slots=True)
class SinkValidation:
    """
    Attributes:
        table: the table, and the place of its rows in the target.
        in_source: whether the source has the table.
    """

    source: TaskSource
    endpoint: Endpoint
    server: TargetServer
    table: SinkTable
    in_source: bool
    request: ValidateRequest

    def run(self) -> Validated | None:
        """Compare; None if neither side has the table.

        Raises:
            NotLanded: bronze does not reach the source's position.
            DmdeltaError: a server or bronze cannot be read, or the sink does not reach the source's position.
        """
        if not self.in_source:
            return self._target_alone()
        found: Validated | None = None
        keys: Sequence[str] | None = None
        certain: dict[str, RowDifference] = {}
        for _ in range(TRIES):
            with self._both() as (table, target, position):
                line, differing = self._compare(table, target, position, keys)
                if differing is None:
                    return line
                found, comparison = found or line, differing.comparison.source
                changed = self._changed_since(position, comparison, table.schema, differing.differences)
            certain |= {row.key: row for row in differing.differences if row.key not in changed}
            keys = sorted(changed)
            if not keys:
                break
        assert found is not None
        return self._line(found, list(certain.values()), len(keys or ()))

    @contextmanager
    def _both(self) -> Iterator[tuple[ConsistentTable, TargetSnapshot, Position]]:
        """Both tables; the target's is at or after the source's position."""
        flavor, threads = self.source.context.flavor, self.request.threads
        with open_consistent(self.endpoint, self.table.name, flavor, threads) as table:
            position = await_landed(self.source, table.position, self.request.wait)
            self._await_executed(position)
            with open_target_snapshot(self.server) as target:
                yield table, target, position

    def _compare(
        self, table: ConsistentTable, target: TargetSnapshot, position: Position, keys: Sequence[str] | None
    ) -> tuple[Validated, Differing | None]:
        """The result so far, and the rows that differ; None if there are no rows to compare."""
        name = target.find(self.table.target)
        if name is None:
            ((count,),) = table.ask([(count_query(table.name), ())])[0]
            return self._target_lacks(position, int(count)), None
        (schema,) = read_schemas(target.connection, lambda *found: found == name)
        left_out = self.table.compared.source_condition
        comparison = plan_server_comparison(
            table.schema, schema, (self.source.context.flavor, target.flavor), table.rows, left_out
        )
        rows = ServerRows(table, target, quoted_name(*name), self.table.own_rows, comparison, self.request.limit)
        whole = keys is None or not table.schema.primary_key
        differing = rows.differing() if whole else rows.differing_among(keys or ())
        line = Validated(
            source=self.source.config.source_id,
            table=shown(self.table.name),
            against=Against.SINK,
            status=Outcome.SAME,
            position=position,
            rows=differing.rows,
            sink_rows=differing.target_rows,
            not_looked_at=differing.not_looked_at,
            left_out_rows=rows.left_out_rows() if keys is None else 0,
            uncompared=comparison.uncompared,
        )
        return line, differing

    def _line(self, found: Validated, differences: Sequence[RowDifference], unstable: int) -> Validated:
        """The result with the rows that certainly differ; `unstable` is the number of rows that changed at each try."""
        counts = Counter(row.kind for row in differences)
        uncertain = found.not_looked_at + unstable
        return Validated(
            source=found.source,
            table=found.table,
            against=Against.SINK,
            status=outcome_of(differs=bool(differences or uncertain), uncompared=bool(found.uncompared)),
            reason=f"{unstable} rows change faster than they can be compared" if unstable else None,
            position=found.position,
            rows=found.rows,
            sink_rows=found.sink_rows,
            missing=counts[Kind.MISSING],
            extra=counts[Kind.EXTRA],
            different=counts[Kind.DIFFERENT],
            not_looked_at=uncertain,
            left_out_rows=found.left_out_rows,
            uncompared=found.uncompared,
            differences=tuple(differences[: self.request.limit]),
        )

    def _changed_since(
        self, position: Position, comparison: Comparison, schema: TableSchema, differences: Sequence[RowDifference]
    ) -> set[str]:
        """The keys of differing rows that the log changed after a position: the target may be ahead for them."""
        landed = newest_landed(self.source.task.spark, self.source.landing)
        if not differences or landed is None or landed.end <= position:
            return set()
        events = self._events(position, landed.end)
        if events.ddl or (events.row_count and not schema.primary_key):
            return {row.key for row in differences}
        if not events.row_count:
            return set()
        bronze = self.source.task.lakehouse.bronze
        with wrapped(bronze, "reading"):
            changed = changed_keys(
                self.source.task.spark, self.source.context, schema, Range(position, landed.end), events
            )
            texts = changed.selectExpr(f"{comparison.key_text.silver} AS k").collect()
        return {row["k"] for row in texts} & {row.key for row in differences}

    def _await_executed(self, position: Position) -> None:
        """Wait until the target has all of the table's changes before a position, and the rows of its snapshots."""
        task = self.source.task
        sink = task.spec.sink
        assert sink is not None
        metadata = Metadata(sink.metadata, task.spec.name, self.source.context.source_id, task.run)
        deadline = time.monotonic() + self.request.wait
        while True:
            executed = flushed_position(self.server, metadata)
            if executed is not None and self.table.name not in tables_missing_rows(task, metadata.source_id):
                events = self._events(executed, position) if executed < position else None
                if events is None or not (events.row_count or events.ddl):
                    return
            if time.monotonic() > deadline:
                raise QualityError(
                    f"the source is at {position}, the sink's checkpoint at {executed}; or it is reloading the table",
                    hint="check with `dmdelta status SPEC` that the task runs. The sink writes its checkpoint every "
                    "syncer.checkpoint-flush-interval: set --wait to a longer time",
                )
            time.sleep(POLL_SECONDS)

    def _events(self, begin: Position, end: Position) -> TableEvents:
        return table_events(self.source.task.spark, self.source.context, self.table.name, begin, end)

    def _target_alone(self) -> Validated | None:
        """Compare a table that the source lacks."""
        source = self.source
        with closing(open_connection(self.endpoint)) as connection:
            at = server_position(connection)
        position = await_landed(source, at, self.request.wait)
        self._await_executed(position)
        with open_target_snapshot(self.server) as target:
            name = target.find(self.table.target)
            if name is None:
                return None
            ((count,),) = target.rows(count_query(quoted_name(*name), self.table.own_rows))
        if self.table.own_rows and not count:
            return self._base(Outcome.EXCLUDED, "dropped in the source; the target has no rows of it")
        return Validated(
            source=source.config.source_id,
            table=shown(self.table.name),
            against=Against.SINK,
            status=Outcome.DIFFERS,
            reason="the target has the table; the source has none, or its account lacks the SELECT privilege",
            position=position,
            rows=0,
            sink_rows=int(count),
            extra=int(count),
        )

    def _target_lacks(self, position: Position, count: int) -> Validated:
        if not count:
            return self._base(
                Outcome.EXCLUDED, "the source's table is empty; the sink creates the table with the first row"
            )
        return Validated(
            source=self.source.config.source_id,
            table=shown(self.table.name),
            against=Against.SINK,
            status=Outcome.DIFFERS,
            reason=f"the target has no table {shown(self.table.target)}",
            position=position,
            rows=count,
            sink_rows=0,
            missing=count,
        )

    def _base(self, status: Outcome, reason: str | None = None, position: Position | None = None) -> Validated:
        return Validated(
            source=self.source.config.source_id,
            table=shown(self.table.name),
            against=Against.SINK,
            status=status,
            reason=reason,
            position=position,
        )
