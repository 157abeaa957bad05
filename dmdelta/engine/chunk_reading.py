"""Reading chunks on an executor: result set rows in, Arrow record batches of bronze rows out."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, cast

from dmdelta.binlog.batch import ChangeBatch
from dmdelta.binlog.resultset import RowReader
from dmdelta.bronze.arrow import to_record_batch
from dmdelta.bronze.reading import decoding
from dmdelta.failpoint import CrashPoint, reach
from dmdelta.model.change import Op
from dmdelta.model.gtid import Flavor
from dmdelta.model.position import Position
from dmdelta.source.chunk import Chunk, RowPackets, read_chunk
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.server import ServerPosition

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class _ChunkOrigin:
    """Where a chunk's rows stand in bronze."""

    source_id: str
    epoch: int
    chunk: Chunk

    @property
    def position(self) -> Position:
        return Position.of_chunk(self.epoch, self.chunk.number)

    @property
    def binlog_file(self) -> str:
        return self.position.binlog_file


def read_chunks(chunks: Sequence[Chunk], options: Mapping[str, str]) -> "Iterator[pa.RecordBatch]":
    """The bronze rows of the chunks, one after the other, in bounded memory. `options` are the data source's."""
    endpoint = Endpoint.from_dict(json.loads(options["endpoint-secret"]))
    flavor, landed_at = cast("Flavor", options["flavor"]), datetime.fromisoformat(options["landed-at"])
    with decoding():
        for chunk in chunks:
            origin = _ChunkOrigin(options["source-id"], int(options["epoch"]), chunk)
            parts = read_chunk(endpoint, chunk, flavor)
            for batch in _batches(origin, parts if options["rows"] == "true" else islice(parts, 1)):
                reach(CrashPoint.SNAPSHOT_CHUNK_READ)
                yield to_record_batch(batch, origin, landed_at)


def _batches(origin: _ChunkOrigin, parts: Iterator[ServerPosition | RowPackets]) -> Iterator[ChangeBatch]:
    """The structure, where the log was, and the rows; numbered, all at the chunk's place."""
    schema, seq, count = origin.chunk.schema, origin.position.seq, 0
    table = (schema.schema, schema.table)
    moment = time.time_ns() // 1000
    reader, batch = RowReader(schema), ChangeBatch()
    batch.add_note((1, seq, -1, None, moment, *table, Op.SCHEMA, None, None, schema.to_json(), schema.version, b""))
    for part in parts:
        if isinstance(part, ServerPosition):
            batch.add_note(
                (1, seq, -2, None, moment, *table, Op.WATERMARK, None, None, _told(part, origin.chunk), None, b"")
            )
            continue
        values, metadata = reader.read(part.data, part.end)
        rows = len(values)
        place = (rows, seq, count, None, moment)
        batch.runs.append((*place, *table, Op.READ, None, None, None, schema.version, metadata))
        batch.before += [b""] * rows
        batch.after += values
        batch.size += part.end
        count += rows
        if batch.size > BATCH_BYTES:
            yield batch
            batch = ChangeBatch()
    if batch.runs:
        yield batch


def _told(position: ServerPosition, chunk: Chunk) -> str:
    gtid_set = None if position.gtid_set is None else str(position.gtid_set)
    fields = {"file": position.binlog_file, "pos": position.offset, "gtid_set": gtid_set, "exact": chunk.is_exact}
    return json.dumps(fields)
