"""The Spark data sources `mysql_chunks` and `mysql_rows`: chunks of source tables in, rows out.

`mysql_chunks` yields bronze rows with op = read, `mysql_rows` one table's own columns, for silver directly.
They are in the engine because stages do not know each other: `source` reads a chunk, bronze and silver define its rows.

Options:
    endpoint-secret: the server (`Endpoint.to_dict`, JSON); Spark redacts options with such a name.
    chunks: a JSON list of `Chunk.to_json`; for `mysql_rows` all of one table.
    flavor, source-id, epoch: of the source, and of the snapshot.
    server-uuid: of the server on which the snapshot was planned; optional. Chunks of another one are refused.
    landed-at: ISO 8601 with a zone.
    rows: `true`, or `false` for only the structures and watermarks.
    meeting: `SnapshotBarrier`, JSON: its readers read all chunks at one position; only for `mysql_chunks`.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from dmdelta.bronze.datasource import neighbours, plain_options, register
from dmdelta.bronze.schema import BRONZE_SCHEMA
from dmdelta.model.gtid import Flavor
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.snapshot.barrier import SnapshotBarrier
from dmdelta.source.snapshot.chunk import Chunk
from dmdelta.source.snapshot.key_ranges import CHUNK_ROWS

if TYPE_CHECKING:
    import pyarrow as pa

    Read = Callable[[Sequence[Chunk], Mapping[str, str], int], Iterator[pa.RecordBatch]]


class ChunkGroup(InputPartition):
    """The chunks that one Spark task reads; `number` is its index."""

    def __init__(self, chunks: Sequence[Chunk], number: int = 0) -> None:
        super().__init__(None)
        self.chunks = tuple(chunks)
        self.number = number


class MySqlChunks(DataSource):
    """See the module docstring."""

    @classmethod
    def name(cls) -> str:
        return "mysql_chunks"

    def schema(self) -> str:
        return BRONZE_SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - the schema is always ours
        return ChunksReader(self.options, _read_chunks)


class MySqlRows(DataSource):
    """See the module docstring."""

    @classmethod
    def name(cls) -> str:
        return "mysql_rows"

    def schema(self) -> str:
        from dmdelta.bronze.direct_rows import rows_schema  # noqa: PLC0415 - as for reading, below

        return rows_schema(_chunks(self.options)[0].schema)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - the schema is always ours
        return ChunksReader(self.options, _read_rows)


class ChunksReader(DataSourceReader):
    """Reads a fixed list of chunks; large ones get their own Spark task."""

    def __init__(self, options: Mapping[str, str], read: "Read") -> None:
        self.options = plain_options(options)
        self._read = read

    def partitions(self) -> Sequence[InputPartition]:
        chunks = _chunks(self.options)
        if "meeting" in self.options:
            return share_chunks(chunks, SnapshotBarrier(**json.loads(self.options["meeting"])).readers)
        return group_chunks(chunks) if self.options["rows"] == "true" else [ChunkGroup(chunks)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        if not isinstance(partition, ChunkGroup):
            raise TypeError(f"not a ChunkGroup: {type(partition).__name__}")
        return self._read(partition.chunks, self.options, partition.number)


def share_chunks(chunks: Sequence[Chunk], readers: int) -> list[ChunkGroup]:
    """Distribute the chunks over readers, with about equal numbers of rows; there are at least as many chunks."""
    shares: list[list[Chunk]] = [[] for _ in range(readers)]
    rows = [0] * readers
    for chunk in sorted(chunks, key=lambda chunk: -chunk.rows):
        least = min(range(readers), key=lambda number: (rows[number], len(shares[number])))
        shares[least].append(chunk)
        rows[least] += chunk.rows
    return [ChunkGroup(share, number) for number, share in enumerate(shares)]


@dataclass(frozen=True, slots=True)
class ChunkFrames:
    """Frames that read chunks of the snapshot with the epoch `epoch` from one server.

    Attributes:
        server_uuid: of that server; None: unknown, so that it is not checked.
    """

    spark: SparkSession
    endpoint: Endpoint
    source_id: str
    flavor: Flavor
    epoch: int
    server_uuid: str | None = None

    def bronze_rows(self, chunks: Sequence[Chunk], *, rows: bool = True) -> DataFrame:
        """In bronze's form; without `rows` only the structures and watermarks."""
        return self._frame(MySqlChunks, chunks, rows=str(rows).lower())

    def bronze_rows_together(self, chunks: Sequence[Chunk], meeting: SnapshotBarrier) -> DataFrame:
        """In bronze's form, all read at one position."""
        return self._frame(MySqlChunks, chunks, rows="true", meeting=json.dumps(asdict(meeting)))

    def table_rows(self, chunks: Sequence[Chunk]) -> DataFrame:
        """The columns of the table that the chunks belong to: `rows_schema`."""
        return self._frame(MySqlRows, chunks, rows="true")

    def _frame(self, kind: type[DataSource], chunks: Sequence[Chunk], **options: str) -> DataFrame:
        register(self.spark, kind)
        if self.server_uuid is not None:
            options["server-uuid"] = self.server_uuid
        reader = (
            self.spark.read.format(kind.name())
            .option("endpoint-secret", json.dumps(self.endpoint.to_dict()))
            .option("chunks", json.dumps([chunk.to_json() for chunk in chunks]))
            .option("flavor", self.flavor)
            .option("source-id", self.source_id)
            .option("epoch", str(self.epoch))
            .options(**options)
            .option("landed-at", datetime.now(timezone.utc).isoformat())
        )
        return reader.load()


# Spark plans in short-lived Python processes: only reading needs the codec and Arrow.
def _read_chunks(chunks: Sequence[Chunk], options: Mapping[str, str], number: int) -> "Iterator[pa.RecordBatch]":
    from dmdelta.engine.snapshot.chunk_reader import read_chunks  # noqa: PLC0415

    return read_chunks(chunks, options, number)


def _read_rows(chunks: Sequence[Chunk], options: Mapping[str, str], number: int) -> "Iterator[pa.RecordBatch]":
    from dmdelta.engine.snapshot.chunk_reader import read_rows  # noqa: PLC0415

    return read_rows(chunks, options, number)


def _chunks(options: Mapping[str, str]) -> list[Chunk]:
    return [Chunk.from_json(text) for text in json.loads(options["chunks"])]


def group_chunks(chunks: Sequence[Chunk]) -> list[ChunkGroup]:
    """Group adjacent chunks up to about CHUNK_ROWS: small tables share a Spark task."""
    return [ChunkGroup(group) for group in neighbours(chunks, lambda chunk: chunk.rows, CHUNK_ROWS)]
