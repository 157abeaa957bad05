"""A table's own columns from rows of a binary result set, for silver directly. Runs on the executors."""

import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from dmdelta.binlog.resultset.column_reader import ColumnReader
from dmdelta.bronze.arrow import variants
from dmdelta.ddl.types.silver_types import silver_type
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema

BATCH_BYTES = 8 << 20
_PLAIN = {
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
}
_OWN_TYPES = "epoch INT, seq BIGINT, row INT, committed_at TIMESTAMP"


def rows_schema(schema: TableSchema) -> str:
    """What `direct_batches` yields, as Spark DDL: c0, c1, …, each as silver has it or as VARIANT; then the version.

    Raises:
        UnsupportedEvent: a column type or character set without a decoder.
    """
    plain = ColumnReader(schema).plain
    kinds = [silver_type(column) if alone else "VARIANT" for column, alone in zip(schema.columns, plain, strict=True)]
    return ", ".join([*(f"c{number} {kind}" for number, kind in enumerate(kinds)), _OWN_TYPES])


def direct_batches(
    schema: TableSchema, position: Position, packets: Iterable[tuple[bytes, int]]
) -> Iterator[pa.RecordBatch]:
    """The rows in bounded memory, numbered at the position of their chunk.

    Args:
        packets: whole row packets, each up to the place given with them.

    Raises:
        CorruptBinlog: they are not rows of the table.
        UnsupportedEvent: a value that cannot be shown without loss.
    """
    reader, count, size = ColumnReader(schema), 0, 0
    for data, end in packets:
        reader.read(data, end)
        size += end
        if size > BATCH_BYTES:
            yield _batch(schema, reader, position, count)
            count, size = count + reader.rows, 0
            reader.clear()
    if size:
        yield _batch(schema, reader, position, count)


def _batch(schema: TableSchema, reader: ColumnReader, position: Position, first: int) -> pa.RecordBatch:
    """What has been read; `first` is the number of its first row in the chunk."""
    rows = reader.rows
    columns = [
        (f"c{number}", _column(values, column, reader if not plain else None))
        for number, (column, plain, values) in enumerate(zip(schema.columns, reader.plain, reader.columns, strict=True))
    ]
    own: dict[str, Any] = {
        "epoch": pa.repeat(pa.scalar(position.epoch, pa.int32()), rows),
        "seq": pa.repeat(pa.scalar(position.seq, pa.int64()), rows),
        "row": pa.array(np.arange(first, first + rows, dtype=np.int32)),
        "committed_at": pa.repeat(pa.scalar(time.time_ns() // 1000, pa.timestamp("us", tz="UTC")), rows),
    }
    names, arrays = zip(*columns, *own.items(), strict=True)
    return pa.RecordBatch.from_arrays(list(arrays), list(names))


def _column(values: list[Any], column: Column, shared: ColumnReader | None) -> Any:
    """Plain values, or VARIANT values with the dictionary of the reader that they share."""
    if shared is None:
        return pa.array(values, _PLAIN[silver_type(column)])
    metadata = pa.repeat(pa.scalar(shared.metadata, pa.binary()), len(values))
    return variants([value or b"" for value in values], metadata)
