"""Rows of a table of dm_meta from Arrow: those that fulfil conditions, and the newest of each key."""

from collections.abc import Iterator, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from dmdelta.lakehouse.access.interface import Comparison, Condition, MetadataRow, NewestBy, metadata_row

PART_ROWS = 50_000
"""Rows that are read before all but the newest of each key are dropped: what a table may need of memory."""
_PLACE = "__place"


def matching_rows(
    table: ds.Dataset, conditions: Sequence[Condition], columns: Sequence[str] | None
) -> list[MetadataRow]:
    """The rows that fulfil all conditions, in no particular order."""
    names = table.schema.names if columns is None else list(columns)
    needed = {*names, *(condition.column for condition in conditions)}
    found = table.to_table(columns=[name for name in table.schema.names if name in needed])
    return _rows(_matching(found, conditions).select(names))


def newest_rows(table: ds.Dataset, by: NewestBy, conditions: Sequence[Condition]) -> list[MetadataRow]:
    """The newest row of each key among those that fulfil all conditions."""
    newest = table.schema.empty_table()
    for part in _parts(table.scanner()):
        newest = _newest(pa.concat_tables([newest, _matching(part, conditions)]), by)
    return _rows(newest)


def _matching(rows: pa.Table, conditions: Sequence[Condition]) -> pa.Table:
    # After the scan: a file that delta-rs has rewritten has texts of another Arrow type (string_view), and pyarrow
    # cannot compare its statistics with a condition's values.
    wanted = _filter(rows.schema, conditions)
    return rows if wanted is None else rows.filter(wanted)


def _parts(scanner: ds.Scanner) -> Iterator[pa.Table]:
    batches: list[pa.RecordBatch] = []
    rows = 0
    for batch in scanner.to_batches():
        batches.append(batch)
        rows += batch.num_rows
        if rows >= PART_ROWS:
            yield pa.Table.from_batches(batches)
            batches, rows = [], 0
    if batches:
        yield pa.Table.from_batches(batches)


def _newest(rows: pa.Table, by: NewestBy) -> pa.Table:
    """The last row of each key in the order; NULL is a key of its own, and rows without an order are ignored."""
    ordered = rows.filter(pc.is_valid(rows[by.order]))
    places = pc.sort_indices(ordered, sort_keys=[(by.order, "ascending")])
    if not by.keys:
        return ordered.take(places[-1:])
    keys = ordered.select(list(by.keys)).take(places).append_column(_PLACE, places)
    last = keys.group_by(list(by.keys), use_threads=False).aggregate([(_PLACE, "last")])
    return ordered.take(last[f"{_PLACE}_last"])


def _filter(schema: pa.Schema, conditions: Sequence[Condition]) -> pc.Expression | None:
    parts = [_expression(schema, condition) for condition in conditions]
    return reduce(lambda one, other: one & other, parts) if parts else None


def _expression(schema: pa.Schema, condition: Condition) -> pc.Expression:
    if condition.column not in schema.names:
        return pc.scalar(condition.comparison is Comparison.NULL)
    column = pc.field(condition.column)
    if condition.comparison is Comparison.NULL:
        return column.is_null()
    if condition.comparison is Comparison.NOT_NULL:
        return column.is_valid()
    if condition.comparison is Comparison.BELOW:
        return column < condition.values[0]
    among = column.isin(pa.array(condition.values, schema.field(condition.column).type))
    return among if condition.comparison is Comparison.ONE_OF else column.is_valid() & ~among


def _rows(table: pa.Table) -> list[MetadataRow]:
    return [metadata_row(row) for row in table.to_pylist()]
