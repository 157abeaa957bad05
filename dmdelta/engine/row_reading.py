"""Reads chunks that bypass bronze on an executor: result set rows in, Arrow record batches of table columns out."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa

from dmdelta.binlog.resultset_columns import ColumnReader
from dmdelta.bronze.arrow import variants
from dmdelta.bronze.reading import decoding
from dmdelta.ddl.types import silver_type
from dmdelta.failpoint import CrashPoint, reach
from dmdelta.model.gtid import Flavor
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.source.chunk import Chunk, RowPackets, read_chunk
from dmdelta.source.endpoint import Endpoint

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
    """The schema of `read_rows` as Spark DDL: c0, c1, …, with silver's type or as VARIANT; then the version.

    Raises:
        UnsupportedEvent: a column type or character set without a decoder.
    """
    plain = ColumnReader(schema).plain
    kinds = [silver_type(column) if alone else "VARIANT" for column, alone in zip(schema.columns, plain, strict=True)]
    return ", ".join([*(f"c{number} {kind}" for number, kind in enumerate(kinds)), _OWN_TYPES])


def read_rows(
    chunks: Sequence[Chunk],
    options: Mapping[str, str],
    number: int = 0,  # noqa: ARG001 - readers of tables that bypass bronze share no barrier
) -> Iterator[pa.RecordBatch]:
    """The rows of chunks of one table, in order, in bounded memory. `options` are the data source's."""
    endpoint = Endpoint.from_dict(json.loads(options["endpoint-secret"]))
    flavor, epoch = cast("Flavor", options["flavor"]), int(options["epoch"])
    with decoding():
        for chunk in chunks:
            packets = (part for part in read_chunk(endpoint, chunk, flavor) if isinstance(part, RowPackets))
            for batch in _batches(chunk.schema, Position.of_chunk(epoch, chunk.number), packets):
                reach(CrashPoint.SNAPSHOT_CHUNK_READ)
                yield batch


def _batches(schema: TableSchema, position: Position, packets: Iterable[RowPackets]) -> Iterator[pa.RecordBatch]:
    reader, count, size = ColumnReader(schema), 0, 0
    for part in packets:
        reader.read(part.data, part.end)
        size += part.end
        if size > BATCH_BYTES:
            yield _batch(schema, reader, position, count)
            count, size = count + reader.rows, 0
            reader.clear()
    if size:
        yield _batch(schema, reader, position, count)


def _batch(schema: TableSchema, reader: ColumnReader, position: Position, first: int) -> pa.RecordBatch:
    """The rows that were read; `first` is the number of the first one in the chunk."""
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
    """Plain values, or VARIANT values with the shared dictionary of the reader."""
    if shared is None:
        return pa.array(values, _PLAIN[silver_type(column)])
    metadata = pa.repeat(pa.scalar(shared.metadata, pa.binary()), len(values))
    return variants([value or b"" for value in values], metadata)
