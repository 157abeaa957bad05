"""Reading a slice: Spark makes the texts in parallel, Arrow brings them, Python sees operations, keys and texts."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from dmdelta.errors import SinkError
from dmdelta.lakehouse.foreign import wrapped
from dmdelta.sink.change import Act, Change
from dmdelta.sink.executed import ExecutedEvents
from dmdelta.sink.plan import TablePlan
from dmdelta.sink.rendering import Rendering, rendering_query

_ACTS = {"insert": Act.INSERT, "update": Act.UPDATE, "delete": Act.DELETE}


@dataclass(frozen=True, slots=True)
class TableChanges:
    """Changes of one source table in a slice.

    Attributes:
        changes: with where they take effect, in order.
        ascii: all keys are ASCII text.
        skipped: changes that an earlier run has executed.
    """

    plan: TablePlan
    changes: Sequence[tuple[int, Change]]
    ascii: bool
    skipped: int


def read_changes(
    spark: SparkSession, bronze: str, wanted: Rendering, epoch: int, executed: ExecutedEvents
) -> TableChanges:
    """Read.

    Raises:
        LakehouseError: bronze cannot be read.
        SinkError: an image lacks the key that the target has.
    """
    with wrapped(bronze, "reading"):
        table = spark.sql(rendering_query(bronze, wanted)).toArrow()
    return left_over(wanted.plan, changes_of(table, wanted.plan), epoch, executed)


def left_over(
    plan: TablePlan, every: Sequence[tuple[int, Change]], epoch: int, executed: ExecutedEvents
) -> TableChanges:
    """Changes without those that an earlier run has executed."""
    left = [one for one in every if not executed.has(epoch, one[1].events[0])] if executed else every
    ascii_only = not plan.watched or all(key.isascii() for _, change in left for key in change.keys)
    return TableChanges(plan, left, ascii_only, len(every) - len(left))


def changes_of(table: pa.Table, plan: TablePlan) -> list[tuple[int, Change]]:
    """The changes of a rendered table, in the log's order.

    Raises:
        SinkError: an image lacks the key that the target has.
    """
    table = table.sort_by([("seq", "ascending"), ("row", "ascending")])
    columns = [table.column(name).to_pylist() for name in ("op", "identity", "was", "values", "sets")]
    own = list(zip(table.column("own").to_pylist(), table.column("row").to_pylist(), strict=True))
    if None in columns[1]:
        raise SinkError(
            f"images of {'.'.join(plan.source)} lack the key of {plan.shape.table}",
            hint="set binlog_row_image to FULL at the source, or give the target's table the source's key",
        )
    keys = _plain_keys(plan, columns[1], columns[2]) if plan.plain else _keys(table)
    ops, identities, was, values, sets = columns
    changes = map(Change, map(_ACTS.__getitem__, ops), identities, was, values, sets, keys, ((event,) for event in own))
    return list(zip(table.column("seq").to_pylist(), changes, strict=True))


def _plain_keys(plan: TablePlan, identities: list[str], was: list[str | None]) -> list[tuple[str, ...]]:
    key = plan.keys[0]
    ends = f".{key.parts[0][1]}{key.ends}"
    return [
        (identity + ends,) if before is None else (identity + ends, before + ends)
        for identity, before in zip(identities, was, strict=True)
    ]


def _keys(table: pa.Table) -> list[tuple[str, ...]]:
    return [
        tuple(new) if old is None or old == new else tuple(dict.fromkeys((*new, *old)))
        for new, old in zip(table.column("new").to_pylist(), table.column("old").to_pylist(), strict=True)
    ]
