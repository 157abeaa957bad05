"""The bronze rows of a snapshot chunk: converts the rows of a binary result set to Arrow record batches."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from dmdelta.binlog.resultset.row_reader import RowReader
from dmdelta.binlog.rows.batch import ChangeBatch, Shared
from dmdelta.binlog.rows.image import LARGE, check_sizes
from dmdelta.bronze.arrow import to_record_batch
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema

BATCH_BYTES = 8 << 20
Packets = tuple[bytes, int]
"""Whole row packets of a binary result set, and the offset where they end; bytes from there on are ignored."""


@dataclass(frozen=True, slots=True)
class ChunkOrigin:
    """The position of a chunk's rows in bronze: they share the one that `number` gives the chunk in its epoch."""

    source_id: str
    epoch: int
    number: int
    schema: TableSchema

    @property
    def position(self) -> Position:
        return Position.of_chunk(self.epoch, self.number)

    @property
    def binlog_file(self) -> str:
        return self.position.binlog_file


@dataclass(frozen=True, slots=True)
class Watermark:
    """The position of the source's log before rows were read; `exact`: the rows are as of that position."""

    binlog_file: str
    offset: int
    gtid_set: str | None
    exact: bool

    def to_json(self) -> str:
        return json.dumps(
            {"file": self.binlog_file, "pos": self.offset, "gtid_set": self.gtid_set, "exact": self.exact}
        )


def snapshot_batches(
    origin: ChunkOrigin, parts: Iterator[Watermark | Packets], landed_at: datetime
) -> Iterator[pa.RecordBatch]:
    """The table's schema, the log position, and the numbered rows, in bounded memory.

    Raises:
        CorruptBinlog: the packets are not rows of the table.
        UnsupportedEvent: a value has no lossless representation, or a row exceeds the size limit of a VARIANT.
    """
    for batch in _batches(origin, parts):
        yield to_record_batch(batch, origin, landed_at)


def _batches(origin: ChunkOrigin, parts: Iterator[Watermark | Packets]) -> Iterator[ChangeBatch]:
    schema, seq, count = origin.schema, origin.position.seq, 0
    now = time.time_ns() // 1000
    reader, batch = RowReader(schema), ChangeBatch()

    def shared(op: Op, text: str | None, version: int | None, metadata: bytes) -> Shared:
        return Shared(None, now, *schema.name, op, ddl=text, version=version, metadata=metadata)

    batch.add_note(seq, -1, shared(Op.SCHEMA, schema.to_json(defaults=True), schema.version, b""))
    for part in parts:
        if isinstance(part, Watermark):
            batch.add_note(seq, -2, shared(Op.WATERMARK, part.to_json(), None, b""))
            continue
        packets, end = part
        values, metadata = reader.read(packets, end)
        if end > LARGE:
            check_sizes(schema, values)
        rows = len(values)
        batch.runs.append((rows, seq, count, batch.share(shared(Op.READ, None, schema.version, metadata))))
        batch.before += [b""] * rows
        batch.after += values
        batch.size += end
        count += rows
        if batch.size > BATCH_BYTES:
            yield batch
            batch = ChangeBatch()
    if batch.runs:
        yield batch
