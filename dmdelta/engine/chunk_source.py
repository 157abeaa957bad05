"""The Spark data source `mysql_chunks`: chunks of source tables in, bronze rows with op = read out.

It stands here because no stage knows another: how a chunk is read is `source`'s business, a bronze row `bronze`'s.

Options:
    endpoint-secret: the server (`Endpoint.to_dict`, JSON); Spark blacks out an option of such a name.
    chunks: a JSON list of `Chunk.to_json`.
    flavor, source-id, epoch: of the source, and of the snapshot.
    landed-at: ISO 8601 with a zone.
    rows: `true`, or `false` for the structures and watermarks only.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from dmdelta.bronze.datasource import neighbours, plain_options
from dmdelta.bronze.schema import BRONZE_SCHEMA
from dmdelta.source.chunk import Chunk
from dmdelta.source.key_ranges import CHUNK_ROWS

if TYPE_CHECKING:
    import pyarrow as pa


class ChunkGroup(InputPartition):
    """Neighbouring chunks that one task reads."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        super().__init__(None)
        self.chunks = tuple(chunks)


class MySqlChunks(DataSource):
    """See the module."""

    @classmethod
    def name(cls) -> str:
        return "mysql_chunks"

    def schema(self) -> str:
        return BRONZE_SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - the schema is always ours
        return ChunksReader(self.options)


class ChunksReader(DataSourceReader):
    """Reads a fixed list of chunks, big ones in a task of their own."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = plain_options(options)

    def partitions(self) -> Sequence[InputPartition]:
        return group_chunks([Chunk.from_json(text) for text in json.loads(self.options["chunks"])])

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        if not isinstance(partition, ChunkGroup):
            raise TypeError(f"not a partition of ours: {type(partition).__name__}")
        from dmdelta.engine.chunk_reading import read_chunks  # noqa: PLC0415 - only reading needs the codec

        return read_chunks(partition.chunks, self.options)


def group_chunks(chunks: Sequence[Chunk]) -> list[ChunkGroup]:
    """Neighbours together until a group has about CHUNK_ROWS: small tables share a task."""
    return [ChunkGroup(group) for group in neighbours(chunks, lambda chunk: chunk.rows, CHUNK_ROWS)]
