"""Applies one turn of a table, or of tables that are renamed into each other."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dmdelta.bronze.progress import LandedRange
from dmdelta.engine.apply.turns import PendingRange
from dmdelta.engine.apply.writer import TableApply
from dmdelta.logging import get_logger
from dmdelta.model.schema import TableName
from dmdelta.silver.apply.request import ApplyResult

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Turn:
    """`parts` has the range of each table; all have the same range of the log."""

    parts: Mapping[TableName, PendingRange]

    @property
    def landed(self) -> LandedRange:
        return next(iter(self.parts.values())).landed


def apply_turn(tables: TableApply, turn: Turn, began: float) -> Iterator[ApplyResult]:
    """Apply the ranges of a turn, log each result, and count the turn's duration.

    Args:
        began: the start of the turn (monotonic seconds).

    Yields:
        The results, while no other thread writes the same merged table.

    Raises:
        DmdeltaError: as `TableApply.apply`.
    """
    parts = turn.parts.values()
    waited = began - min(part.since for part in parts)
    events = [part.events for part in parts if part.events is not None]
    if len(events) == len(parts):
        results = tables.apply(events, turn.landed)
    else:  # tables of a group have known events, so it is one table
        results = tables.resume(next(iter(turn.parts)), turn.landed)
    for result in results:
        log.info(
            "turn applied",
            source=tables.context.source_id,
            table=f"{result.schema}.{result.table}",
            end=str(result.end),
            rows=result.row_count,
            steps=[step.value for step in result.steps],
            path=result.path.value if result.path is not None else None,
            waited_seconds=round(waited, 1),
        )
        yield result
    tables.counters.spent(tables.context.source_id, "turn", time.monotonic() - began)
