"""The Spark data source `mysql_chunks`: chunks of source tables in, bronze rows with op = read out.

It stands here because no stage knows another: how a chunk is read is `source`'s business, a bronze row `bronze`'s.

Options:
    endpoint-secret: the server (`Endpoint.to_dict`, JSON); Spark blacks out an option of such a name.
    chunks: a JSON list of `Chunk.to_json`.
    flavor, source-id, epoch: of the source, and of the snapshot.
    landed-at: ISO 8601 with a zone.
    rows: `false` for the structures and watermarks only [true].
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from dmdelta.bronze.schema import BRONZE_SCHEMA
from dmdelta.source.chunk import Chunk
from dmdelta.source.key_ranges import CHUNK_ROWS

if TYPE_CHECKING:
    import pyarrow as pa


def register(spark: SparkSession) -> None:
    """Make `mysql_chunks` known to a session; one that knows it already stays as it is."""
    try:
        spark.dataSource.register(MySqlChunks)
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise


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
        self.options = {key.lower(): value for key, value in options.items()}

    def partitions(self) -> Sequence[InputPartition]:
        return group_chunks([Chunk.from_json(text) for text in json.loads(self.options["chunks"])])

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        if not isinstance(partition, ChunkGroup):
            raise TypeError(f"not a partition of ours: {type(partition).__name__}")
        from dmdelta.engine.chunk_reading import read_chunks  # noqa: PLC0415 - only reading needs the codec

        return read_chunks(partition.chunks, self.options)


def group_chunks(chunks: Sequence[Chunk]) -> list[ChunkGroup]:
    """Neighbours together until a group has about CHUNK_ROWS: small tables share a task."""
    groups: list[list[Chunk]] = []
    rows = 0
    for chunk in chunks:
        if not groups or rows + chunk.rows > CHUNK_ROWS:
            groups.append([])
            rows = 0
        groups[-1].append(chunk)
        rows += chunk.rows
    return [ChunkGroup(group) for group in groups]
