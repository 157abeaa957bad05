"""The Spark data sources `mysql_chunks` and `mysql_rows`: chunks of source tables in, rows out.

`mysql_chunks` gives bronze rows with op = read, `mysql_rows` one table's own columns, for silver directly.
They stand here because no stage knows another: how a chunk is read is `source`'s business, a row's form theirs.

Options:
    endpoint-secret: the server (`Endpoint.to_dict`, JSON); Spark blacks out an option of such a name.
    chunks: a JSON list of `Chunk.to_json`; for `mysql_rows` all of one table.
    flavor, source-id, epoch: of the source, and of the snapshot.
    landed-at: ISO 8601 with a zone.
    rows: `true`, or `false` for the structures and watermarks only.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from dmdelta.bronze.datasource import neighbours, plain_options
from dmdelta.bronze.schema import BRONZE_SCHEMA
from dmdelta.engine.chunk_reading import read_chunks
from dmdelta.engine.row_reading import read_rows, rows_schema
from dmdelta.source.chunk import Chunk
from dmdelta.source.key_ranges import CHUNK_ROWS

if TYPE_CHECKING:
    import pyarrow as pa

    Read = Callable[[Sequence[Chunk], Mapping[str, str]], Iterator[pa.RecordBatch]]


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
        return ChunksReader(self.options, read_chunks)


class MySqlRows(DataSource):
    """See the module."""

    @classmethod
    def name(cls) -> str:
        return "mysql_rows"

    def schema(self) -> str:
        return rows_schema(_chunks(self.options)[0].schema)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - the schema is always ours
        return ChunksReader(self.options, read_rows)


class ChunksReader(DataSourceReader):
    """Reads a fixed list of chunks, big ones in a task of their own."""

    def __init__(self, options: Mapping[str, str], read: "Read") -> None:
        self.options = plain_options(options)
        self._read = read

    def partitions(self) -> Sequence[InputPartition]:
        chunks = _chunks(self.options)
        return group_chunks(chunks) if self.options["rows"] == "true" else [ChunkGroup(chunks)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        if not isinstance(partition, ChunkGroup):
            raise TypeError(f"not a partition of ours: {type(partition).__name__}")
        return self._read(partition.chunks, self.options)


def _chunks(options: Mapping[str, str]) -> list[Chunk]:
    return [Chunk.from_json(text) for text in json.loads(options["chunks"])]


def group_chunks(chunks: Sequence[Chunk]) -> list[ChunkGroup]:
    """Neighbours together until a group has about CHUNK_ROWS: small tables share a task."""
    return [ChunkGroup(group) for group in neighbours(chunks, lambda chunk: chunk.rows, CHUNK_ROWS)]
