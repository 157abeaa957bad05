"""Rows of a table of dm_meta from its Parquet files: those that fulfil conditions, and the newest of each key.

Conditions and keys are evaluated on Python values. PyArrow's datasets and scalars would do the same, but import pandas,
and so does its conversion of timestamps: half of a command's start.
"""

from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import repeat
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dmdelta.lakehouse.access.interface import Comparison, Condition, MetadataRow, NewestBy

PART_ROWS = 50_000
"""Rows that are read before all but the newest of each key are dropped: what a table may need of memory."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class DataFiles:
    """A version of a table without partitions.

    Attributes:
        files: paths or opened files.
        schema: all columns; a file of an older version lacks some, and may have other Arrow types for the same values.
    """

    files: Iterable[Any]
    schema: pa.Schema

    def parts(self, columns: Collection[str] | None = None) -> Iterator[pa.Table]:
        """The rows, at most PART_ROWS at a time; only these columns, or all. No part is empty."""
        fields = [field for field in self.schema if columns is None or field.name in columns]
        schema, batches, rows = pa.schema(fields), list[pa.RecordBatch](), 0
        for file in self.files:
            with pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as opened:
                names = [name for name in schema.names if name in opened.schema_arrow.names]
                for batch in opened.iter_batches(PART_ROWS, columns=names, use_threads=False):
                    if rows and rows + batch.num_rows > PART_ROWS:
                        yield pa.Table.from_batches(batches, schema)
                        batches, rows = [], 0
                    batches.append(_conformed(batch, schema))
                    rows += batch.num_rows
        if rows:
            yield pa.Table.from_batches(batches, schema)


def matching_rows(
    table: DataFiles, conditions: Sequence[Condition], columns: Sequence[str] | None
) -> list[MetadataRow]:
    """The rows that fulfil all conditions, in no particular order."""
    names = table.schema.names if columns is None else list(columns)
    needed = {*names, *(condition.column for condition in conditions)}
    parts = (_matching(part, conditions).select(names) for part in table.parts(needed))
    return [row for part in parts for row in _rows(part)]


def newest_rows(table: DataFiles, by: NewestBy, conditions: Sequence[Condition]) -> list[MetadataRow]:
    """The newest row of each key among those that fulfil all conditions."""
    newest: list[pa.Table] = []
    for part in table.parts():
        newest = [_newest(pa.concat_tables([*newest, _matching(part, conditions)]), by)]
    return [row for rows in newest for row in _rows(rows)]


def _conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with all columns of the table, in the table's types."""

    def column(field: pa.Field) -> pa.Array:
        if field.name not in batch.schema.names:
            return pa.nulls(batch.num_rows, field.type)
        found = batch.column(field.name)
        return found if found.type == field.type else found.cast(field.type)

    return pa.RecordBatch.from_arrays([column(field) for field in schema], schema=schema)


def _matching(rows: pa.Table, conditions: Sequence[Condition]) -> pa.Table:
    places: Iterable[int] = range(rows.num_rows)
    for condition in conditions:
        present = condition.column in rows.schema.names
        values = _values(rows[condition.column]) if present else [None] * rows.num_rows
        places = [place for place in places if _fulfils(values[place], condition)]
    return rows.take(_indices(places)) if conditions else rows


def _fulfils(value: Any, condition: Condition) -> bool:
    if value is None:
        return condition.comparison is Comparison.NULL
    match condition.comparison:
        case Comparison.NULL:
            return False
        case Comparison.NOT_NULL:
            return True
        case Comparison.BELOW:
            return bool(value < condition.values[0])
        case Comparison.ONE_OF:
            return value in condition.values
        case Comparison.NONE_OF:
            return value not in condition.values


def _newest(rows: pa.Table, by: NewestBy) -> pa.Table:
    """The last row of each key in the order; NULL is a key of its own, and rows without an order are ignored."""
    orders = _values(rows[by.order])
    keys: Iterable[tuple[Any, ...]] = zip(*(_values(rows[key]) for key in by.keys), strict=True)
    last: dict[tuple[Any, ...], int] = {}
    for place, (key, value) in enumerate(zip(keys if by.keys else repeat(()), orders, strict=False)):
        if value is not None and (key not in last or orders[last[key]] <= value):
            last[key] = place
    return rows.take(_indices(last.values()))


def _indices(places: Iterable[int]) -> pa.Array:
    numbers = array("q", places)
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])


def _rows(table: pa.Table) -> list[MetadataRow]:
    names, columns = table.schema.names, [_values(column) for column in table.columns]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _values(column: pa.ChunkedArray) -> list[Any]:
    """The values; timestamps in UTC, exact to the microsecond."""
    if not pa.types.is_timestamp(column.type):
        found: list[Any] = column.to_pylist()
        return found
    micros = column.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    return [None if value is None else _EPOCH + timedelta(microseconds=value) for value in micros]
