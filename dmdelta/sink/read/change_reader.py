"""Reads a slice: Spark reads the images of a table's rows, Arrow renders their texts, column by column."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pyspark.sql import SparkSession

from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.sink.change import ACTS, Change
from dmdelta.sink.execution_log import ExecutedEvents
from dmdelta.sink.plan.table_mapping import TablePlan
from dmdelta.sink.read.columns import Columns, rendered
from dmdelta.sink.read.image_query import Rendering, rendering_query


@dataclass(frozen=True, slots=True)
class TableChanges:
    """The changes of one source table in a slice.

    Attributes:
        columns: the changes in order; None if there are none.
        ascii: all keys are ASCII text.
        skipped: number of changes that an earlier run has executed.
    """

    plan: TablePlan
    columns: Columns | None
    ascii: bool = True
    skipped: int = 0

    def __len__(self) -> int:
        return len(self.columns) if self.columns is not None else 0

    def changes(self) -> list[tuple[int, Change]]:
        """The changes one by one, with the `seq` at which they take effect."""
        return changes_of(self.columns) if self.columns is not None else []


def read_changes(
    spark: SparkSession, bronze: str, wanted: Rendering, epoch: int, executed: ExecutedEvents
) -> TableChanges:
    """Read the changes of a table.

    Raises:
        LakehouseError: bronze cannot be read.
        SinkError: an image lacks the key that the target has.
    """
    with wrapped(bronze, "reading"):
        table = spark.sql(rendering_query(bronze, wanted)).toArrow()
    if not table.num_rows:
        return TableChanges(wanted.plan, None)
    return left_over(wanted.plan, rendered(table, wanted), epoch, executed)


def left_over(plan: TablePlan, every: Columns, epoch: int, executed: ExecutedEvents) -> TableChanges:
    """The changes without those that an earlier run has executed."""
    remaining = every
    if executed:
        events = zip(every.own.tolist(), every.row.tolist(), strict=True)
        remaining = every.where(np.array([not executed.has(epoch, event) for event in events], bool))
    return TableChanges(plan, remaining, not plan.watched or _is_ascii(remaining), len(every) - len(remaining))


def changes_of(columns: Columns) -> list[tuple[int, Change]]:
    """Changes one by one, with the `seq` at which they take effect."""
    count = len(columns)
    acts = [ACTS[number] for number in columns.acts.tolist()]
    sets = [None] * count if columns.sets is None else columns.sets.to_pylist()
    texts = [array.to_pylist() for array in (columns.identity, columns.was, columns.values)]
    events = [(event,) for event in zip(columns.own.tolist(), columns.row.tolist(), strict=True)]
    changes = map(Change, acts, *texts, sets, _keys(columns), events)
    return list(zip(columns.seq.tolist(), changes, strict=True))


def _keys(columns: Columns) -> Sequence[tuple[str, ...]]:
    every = [array.to_pylist() for array in (*columns.new, *columns.old)]
    return [tuple(dict.fromkeys(key for key in keys if key is not None)) for keys in zip(*every, strict=True)]


def _is_ascii(columns: Columns) -> bool:
    for array in (*columns.new, *columns.old):
        _, ends, data = array.buffers()
        if data is not None and len(array):
            offsets = np.frombuffer(ends, np.int64)[array.offset : array.offset + len(array) + 1]
            if (np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]] > 0x7F).any():
                return False
    return True
