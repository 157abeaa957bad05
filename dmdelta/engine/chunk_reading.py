"""Reads chunks on an executor: result set rows in, Arrow record batches of bronze rows out."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, cast

from dmdelta.binlog.batch import ChangeBatch, Shared
from dmdelta.binlog.image import LARGE, check_sizes
from dmdelta.binlog.resultset import RowReader
from dmdelta.bronze.arrow import to_record_batch
from dmdelta.bronze.reading import decoding
from dmdelta.failpoint import CrashPoint, reach
from dmdelta.model.change import Op
from dmdelta.model.gtid import Flavor
from dmdelta.model.position import Position
from dmdelta.source.chunk import Chunk, RowPackets, read_chunk, read_together
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.meeting import Meeting
from dmdelta.source.server import ServerPosition

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class _ChunkOrigin:
    """The origin of a chunk's rows in bronze."""

    source_id: str
    epoch: int
    chunk: Chunk
    exact: bool
    """The rows are those of one position."""

    @property
    def position(self) -> Position:
        return Position.of_chunk(self.epoch, self.chunk.number)

    @property
    def binlog_file(self) -> str:
        return self.position.binlog_file


def read_chunks(chunks: Sequence[Chunk], options: Mapping[str, str], number: int = 0) -> "Iterator[pa.RecordBatch]":
    """The bronze rows of the chunks, one chunk after the other, in bounded memory. `options` are the data source's.

    Args:
        number: index of the reader, among those of a barrier.
    """
    landed_at = datetime.fromisoformat(options["landed-at"])
    exact = "meeting" in options
    with decoding():
        for chunk, parts in _parts(chunks, options, number):
            origin = _ChunkOrigin(options["source-id"], int(options["epoch"]), chunk, exact or chunk.is_exact)
            for batch in _batches(origin, parts if options["rows"] == "true" else islice(parts, 1)):
                reach(CrashPoint.SNAPSHOT_CHUNK_READ)
                yield to_record_batch(batch, origin, landed_at)


def _parts(
    chunks: Sequence[Chunk], options: Mapping[str, str], number: int
) -> Iterator[tuple[Chunk, Iterator[ServerPosition | RowPackets]]]:
    endpoint = Endpoint.from_dict(json.loads(options["endpoint-secret"]))
    flavor = cast("Flavor", options["flavor"])
    if "meeting" in options:
        yield from read_together(endpoint, chunks, flavor, Meeting(**json.loads(options["meeting"])), number)
        return
    for chunk in chunks:
        yield chunk, read_chunk(endpoint, chunk, flavor)


def _batches(origin: _ChunkOrigin, parts: Iterator[ServerPosition | RowPackets]) -> Iterator[ChangeBatch]:
    """The structure, the log position, and the rows, which are numbered; all have the chunk's position."""
    schema, seq, count = origin.chunk.schema, origin.position.seq, 0
    moment = time.time_ns() // 1000
    reader, batch = RowReader(schema), ChangeBatch()

    def shared(op: Op, note: str | None, version: int | None, metadata: bytes) -> Shared:
        return Shared(None, moment, *schema.name, op, None, None, note, version, metadata)

    batch.add_note(seq, -1, shared(Op.SCHEMA, schema.to_json(), schema.version, b""))
    for part in parts:
        if isinstance(part, ServerPosition):
            reach(CrashPoint.SNAPSHOT_CHUNK_LOW)
            batch.add_note(seq, -2, shared(Op.WATERMARK, _watermark(part, exact=origin.exact), None, b""))
            continue
        values, metadata = reader.read(part.data, part.end)
        if part.end > LARGE:
            check_sizes(schema, values)
        rows = len(values)
        batch.runs.append((rows, seq, count, batch.share(shared(Op.READ, None, schema.version, metadata))))
        batch.before += [b""] * rows
        batch.after += values
        batch.size += part.end
        count += rows
        if batch.size > BATCH_BYTES:
            yield batch
            batch = ChangeBatch()
    if batch.runs:
        yield batch


def _watermark(position: ServerPosition, *, exact: bool) -> str:
    gtid_set = None if position.gtid_set is None else str(position.gtid_set)
    fields = {"file": position.binlog_file, "pos": position.offset, "gtid_set": gtid_set, "exact": exact}
    return json.dumps(fields)
