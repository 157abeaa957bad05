"""Reading chunks on an executor: result set rows in, Arrow record batches of bronze rows out."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, cast

from dmdelta.bronze.direct_rows import direct_batches
from dmdelta.bronze.segment_reader import decoding
from dmdelta.bronze.snapshot_rows import ChunkOrigin, Packets, Watermark, snapshot_batches
from dmdelta.failpoint import CrashPoint, reach
from dmdelta.model.gtid import Flavor
from dmdelta.model.position import Position
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.server import ServerPosition, require_server
from dmdelta.source.snapshot.barrier import SnapshotBarrier
from dmdelta.source.snapshot.chunk import Chunk, RowPackets, read_chunk, read_together

if TYPE_CHECKING:
    import pyarrow as pa


def read_chunks(chunks: Sequence[Chunk], options: Mapping[str, str], number: int = 0) -> "Iterator[pa.RecordBatch]":
    """The bronze rows of the chunks, one after the other, in bounded memory. `options` are the data source's.

    Args:
        number: of the reader, among those of a meeting.
    """
    landed_at = datetime.fromisoformat(options["landed-at"])
    exact = "meeting" in options
    with decoding():
        for chunk, parts in _parts(chunks, options, number):
            origin = ChunkOrigin(options["source-id"], int(options["epoch"]), chunk.number, chunk.schema)
            wanted = parts if options["rows"] == "true" else islice(parts, 1)
            for batch in snapshot_batches(origin, _landing(wanted, exact=exact or chunk.is_exact), landed_at):
                reach(CrashPoint.SNAPSHOT_CHUNK_READ)
                yield batch


def _parts(
    chunks: Sequence[Chunk], options: Mapping[str, str], number: int
) -> Iterator[tuple[Chunk, Iterator[ServerPosition | RowPackets]]]:
    endpoint = Endpoint.from_dict(json.loads(options["endpoint-secret"]))
    flavor = cast("Flavor", options["flavor"])
    read: Iterator[tuple[Chunk, Iterator[ServerPosition | RowPackets]]]
    if "meeting" in options:
        meeting = SnapshotBarrier(**json.loads(options["meeting"]))
        read = read_together(endpoint, chunks, flavor, meeting, number)
    else:
        read = ((chunk, read_chunk(endpoint, chunk, flavor)) for chunk in chunks)
    for chunk, parts in read:
        yield chunk, _of_server(parts, options.get("server-uuid"), endpoint)


def _of_server(
    parts: Iterator[ServerPosition | RowPackets], planned: str | None, endpoint: Endpoint
) -> Iterator[ServerPosition | RowPackets]:
    """The parts of a chunk, if they come from the server with the UUID `planned`; None: from any."""
    for part in parts:
        if isinstance(part, ServerPosition):
            require_server(part.server_uuid, planned, endpoint)
        yield part


def _landing(parts: Iterator[ServerPosition | RowPackets], *, exact: bool) -> Iterator[Watermark | Packets]:
    """The parts of a chunk in the words of bronze."""
    for part in parts:
        if isinstance(part, ServerPosition):
            reach(CrashPoint.SNAPSHOT_CHUNK_LOW)
            gtid_set = None if part.gtid_set is None else str(part.gtid_set)
            yield Watermark(part.binlog_file, part.offset, gtid_set, exact)
        else:
            yield part.data, part.end


def read_rows(chunks: Sequence[Chunk], options: Mapping[str, str], number: int = 0) -> "Iterator[pa.RecordBatch]":
    """The rows of chunks of one table, one after the other, in bounded memory. `options` are the data source's."""
    epoch = int(options["epoch"])
    with decoding():
        for chunk, parts in _parts(chunks, options, number):
            packets = ((part.data, part.end) for part in parts if isinstance(part, RowPackets))
            for batch in direct_batches(chunk.schema, Position.of_chunk(epoch, chunk.number), packets):
                reach(CrashPoint.SNAPSHOT_CHUNK_READ)
                yield batch
