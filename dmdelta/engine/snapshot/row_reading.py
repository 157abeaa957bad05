"""Reading chunks past bronze on an executor: result set rows in, Arrow record batches of a table's own columns out."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from dmdelta.bronze.direct_rows import direct_batches
from dmdelta.bronze.segment_reader import decoding
from dmdelta.failpoint import CrashPoint, reach
from dmdelta.model.gtid import Flavor
from dmdelta.model.position import Position
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.snapshot.chunk import Chunk, RowPackets, read_chunk

if TYPE_CHECKING:
    import pyarrow as pa


def read_rows(
    chunks: Sequence[Chunk],
    options: Mapping[str, str],
    number: int = 0,  # noqa: ARG001 - readers of tables past bronze do not meet
) -> "Iterator[pa.RecordBatch]":
    """The rows of chunks of one table, one after the other, in bounded memory. `options` are the data source's."""
    endpoint = Endpoint.from_dict(json.loads(options["endpoint-secret"]))
    flavor, epoch = cast("Flavor", options["flavor"]), int(options["epoch"])
    with decoding():
        for chunk in chunks:
            parts = read_chunk(endpoint, chunk, flavor)
            packets = ((part.data, part.end) for part in parts if isinstance(part, RowPackets))
            for batch in direct_batches(chunk.schema, Position.of_chunk(epoch, chunk.number), packets):
                reach(CrashPoint.SNAPSHOT_CHUNK_READ)
                yield batch
