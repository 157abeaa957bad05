"""The table `dm_meta.<task>_snapshot`: what a snapshot reads, and which of it has landed with which commit of bronze.

A chunk has a row when it is planned, and another one, with `landed_version`, when it has landed. Bronze's own commits
are the truth about what has landed; these rows are for people, and for the plan.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812 - Spark's convention

from dmdelta.errors import LakehouseError
from dmdelta.lakehouse.commits import CommitTag, append
from dmdelta.lakehouse.foreign import wrapped
from dmdelta.lakehouse.history import OwnCommit
from dmdelta.lakehouse.metadata import create_metadata, metadata_frame
from dmdelta.lakehouse.place import Lakehouse, literal
from dmdelta.lakehouse.session import clone_session
from dmdelta.model.gtid import Flavor, GtidSet, parse_gtid_set
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema
from dmdelta.source.chunk import Chunk

COLUMNS: dict[str, T.DataType] = {
    "id": T.StringType(),
    "epoch": T.IntegerType(),
    "chunk": T.IntegerType(),
    "cp_schema": T.StringType(),
    "cp_table": T.StringType(),
    "chunk_info": T.StringType(),
    "estimated_rows": T.LongType(),
    "binlog_name": T.StringType(),
    "binlog_pos": T.LongType(),
    "binlog_gtid": T.StringType(),
    "landed_version": T.LongType(),
    "updated_at": T.TimestampType(),
}
_CHUNK_BITS = 32


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A planned snapshot.

    Attributes:
        epoch: of the rows that it reads.
        log_begin: from where the log is followed, in an epoch of its own: the one behind.
        gtid_set: all transactions below that, if the source has GTIDs.
    """

    epoch: int
    log_begin: Position
    gtid_set: GtidSet | None
    chunks: tuple[Chunk, ...]

    @property
    def begin(self) -> Position:
        return Position.of_chunk(self.epoch, 1)

    @property
    def cut_tables(self) -> frozenset[TableSchema]:
        """Those of more than one chunk."""
        count = Counter(chunk.schema for chunk in self.chunks)
        return frozenset(schema for schema, chunks in count.items() if chunks > 1)

    def behind(self, chunk: Chunk) -> Position:
        """The position of the chunk that follows."""
        return Position.of_chunk(self.epoch, chunk.number + 1)


class ChunkStore:
    """The snapshots of one source of a task. Has a session of its own; one thread at a time."""

    def __init__(self, spark: SparkSession, lakehouse: Lakehouse, task: str, source_id: str, run: str) -> None:
        self._spark = clone_session(spark)
        self._table = lakehouse.metadata(f"{task}_snapshot")
        self._lakehouse = lakehouse
        self._task = task
        self._source_id = source_id
        self._run = run

    def open(self) -> None:
        """Make the table if it is not there.

        Raises:
            ForeignTable: the table there is not this task's.
            LakehouseError: it cannot be made.
        """
        create_metadata(self._spark, self._lakehouse, self._table, COLUMNS, self._task)

    def newest_epoch(self) -> int:
        """The epoch of the newest plan, 0 if there is none."""
        return self._greatest("epoch", "true")

    def newest_landed(self, epoch: int) -> int:
        """The last chunk of an epoch that is written down as landed, 0 if there is none."""
        return self._greatest("chunk", f"epoch = {epoch} AND landed_version IS NOT NULL")

    def plan(self, snapshot: Snapshot) -> None:
        """Write a plan down."""
        self._append(snapshot, snapshot.chunks, 0, None)

    def landed(self, snapshot: Snapshot, chunks: Sequence[Chunk], commit: OwnCommit) -> None:
        """Write down that chunks have landed, and with which commit of bronze."""
        self._append(snapshot, chunks, chunks[-1].number, commit.version)

    def load(self, epoch: int, flavor: Flavor) -> Snapshot:
        """The plan of an epoch.

        Raises:
            LakehouseError: there is none.
        """
        query = (
            f"SELECT chunk_info, binlog_name, binlog_pos, binlog_gtid FROM {self._table} "
            f"WHERE id = {literal(self._source_id)} AND epoch = {epoch} AND landed_version IS NULL ORDER BY chunk"
        )
        with wrapped(self._table, "reading"):
            rows = self._spark.sql(query).collect()
        if not rows:
            raise LakehouseError(
                f"{self._table} does not have the plan of a snapshot that bronze has begun",
                hint="restore it, or remove the task's bronze and silver tables and begin anew",
                epoch=epoch,
            )
        first = rows[0]
        gtids = first["binlog_gtid"]
        return Snapshot(
            epoch,
            Position(epoch + 1, first["binlog_name"], first["binlog_pos"]),
            None if gtids is None else parse_gtid_set(gtids, flavor),
            tuple(Chunk.from_json(row["chunk_info"]) for row in rows if row["chunk_info"] is not None),
        )

    def _greatest(self, column: str, condition: str) -> int:
        """Of this source's rows for which `condition` (SQL) holds, 0 if there are none."""
        query = f"SELECT max({column}) FROM {self._table} WHERE id = {literal(self._source_id)} AND {condition}"
        with wrapped(self._table, "reading"):
            return int(self._spark.sql(query).collect()[0][0] or 0)

    def _append(self, snapshot: Snapshot, chunks: Sequence[Chunk], upto: int, landed_version: int | None) -> None:
        now = datetime.now(timezone.utc)
        begin = snapshot.log_begin
        common = {
            "id": self._source_id,
            "epoch": snapshot.epoch,
            "binlog_name": begin.binlog_file,
            "binlog_pos": begin.offset,
            "binlog_gtid": None if snapshot.gtid_set is None else str(snapshot.gtid_set),
            "landed_version": landed_version,
            "updated_at": now,
        }
        rows = [{**common, **_told(chunk)} for chunk in chunks] or [common]  # a plan of nothing has a begin, too
        frame = metadata_frame(self._spark, COLUMNS, rows)
        app = f"dmdelta:{self._task}:{self._source_id}:snapshot"
        version = snapshot.epoch << _CHUNK_BITS | upto
        end = Position.of_chunk(snapshot.epoch, upto + 1)
        tag = CommitTag(app, version, self._task, self._source_id, self._run, snapshot.begin, end)
        append(self._spark, frame, self._table, tag)


def _told(chunk: Chunk) -> dict[str, Any]:
    return {
        "chunk": chunk.number,
        "cp_schema": chunk.schema.schema,
        "cp_table": chunk.schema.table,
        "chunk_info": chunk.to_json(),
        "estimated_rows": chunk.rows,
    }
