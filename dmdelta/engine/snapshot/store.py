"""The table `dm_meta.<task>_snapshot`: what snapshots read, what of it has landed, and requests for snapshots.

Bronze's own commits determine what has landed; these rows serve operators, the plans, and requests.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812 - Spark's convention

from dmdelta.engine.snapshot.plan import LAST_CHUNK, PlannedSnapshot
from dmdelta.errors import LakehouseError
from dmdelta.lakehouse.access.commit_tag import CommitTag, OwnCommit
from dmdelta.lakehouse.access.interface import Condition, below, is_not_null, is_null, none_of, one_of
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.metadata_table import MetadataRow, MetadataTable
from dmdelta.lakehouse.session import clone_session
from dmdelta.model.gtid import Flavor, parse_gtid_set
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.sink.plan.reload import Reload
from dmdelta.source.snapshot.chunk import Chunk

SNAPSHOT = MetadataTable(
    "snapshot",
    {
        "id": T.StringType(),
        "kind": T.StringType(),
        "epoch": T.IntegerType(),
        "chunk": T.IntegerType(),
        "cp_schema": T.StringType(),
        "cp_table": T.StringType(),
        "chunk_info": T.StringType(),
        "estimated_rows": T.LongType(),
        "log_epoch": T.IntegerType(),
        "binlog_name": T.StringType(),
        "binlog_pos": T.LongType(),
        "binlog_gtid": T.StringType(),
        "safe_until_name": T.StringType(),
        "safe_until_pos": T.LongType(),
        "landed_version": T.LongType(),
        "request": T.StringType(),
        "updated_at": T.TimestampType(),
        "server_uuid": T.StringType(),
    },
    keys=("id", "kind", "epoch", "chunk", "request"),
)

_NAME = ("cp_schema", "cp_table")


class Kind(str, Enum):
    """The kind of a row."""

    REQUESTED = "requested"
    """A snapshot of a table is requested."""
    SERVED = "served"
    """A plan includes the request."""
    PLANNED = "planned"
    """A chunk is to be read."""
    LANDED = "landed"
    """The chunk is in bronze."""
    APPLIED = "applied"
    """A table of an ad-hoc snapshot is in silver; its log continues at the position."""
    ENDED = "ended"
    """An ad-hoc snapshot is in silver, or was abandoned for another one."""


@dataclass(frozen=True, slots=True)
class Awaited:
    """Unfinished ad-hoc snapshots.

    Attributes:
        requests: the requested tables that are in no plan yet, by request.
        epoch: of the snapshot in progress; None if there is none.
        begun: the tables of that snapshot.
    """

    requests: Mapping[str, TableName]
    epoch: int | None
    begun: frozenset[TableName]

    @property
    def tables(self) -> frozenset[TableName]:
        return self.begun.union(self.requests.values())


class ChunkStore:
    """The snapshots of one source of a task. Has its own session; not thread-safe."""

    def __init__(self, spark: SparkSession, lakehouse: Lakehouse, task: str, source_id: str, run: str) -> None:
        self._table = SNAPSHOT.of(clone_session(spark), lakehouse, task)
        self._task = task
        self._source_id = source_id
        self._run = run

    def open(self) -> None:
        """Create the table if it does not exist.

        Raises:
            ForeignTable: the existing table belongs to another task.
            LakehouseError: it cannot be created.
        """
        self._table.create()

    def newest_epoch(self) -> int:
        """The epoch of the newest full load's plan; 0 if there is none."""
        return max(0, *self._extremes())

    def next_ad_hoc_epoch(self) -> int:
        """An epoch for an ad-hoc snapshot: below 0, and below all previous ones."""
        return min(0, *self._extremes()) - 1

    def newest_landed(self, epoch: int) -> int:
        """The last chunk of an epoch that is recorded as landed; 0 if there is none."""
        rows = self._rows(Kind.LANDED, one_of("epoch", epoch), columns=("chunk",))
        return max((row["chunk"] or 0 for row in rows), default=0)

    def plan(self, snapshot: PlannedSnapshot, served: Collection[str] = ()) -> None:
        """Record a plan and the requests that it serves."""
        self._append(snapshot, Kind.PLANNED, snapshot.chunks, extra=[_mark(Kind.SERVED, request=one) for one in served])

    def landed(self, snapshot: PlannedSnapshot, chunks: Sequence[Chunk], commit: OwnCommit) -> None:
        """Record that chunks have landed, and with which commit of bronze."""
        self._append(snapshot, Kind.LANDED, chunks, commit)

    def end(
        self,
        snapshot: PlannedSnapshot,
        requeue: Collection[TableName] = (),
        applied: Sequence[Reload] = (),
    ) -> frozenset[str]:
        """Record that an ad-hoc snapshot is finished.

        Args:
            requeue: tables for which it failed: they are requested again.
            applied: the others.

        Returns:
            The ids of the new requests.
        """
        requests = [_mark(Kind.REQUESTED, name, uuid4().hex) for name in requeue]
        self._append(snapshot, Kind.ENDED, (), extra=[*requests, *map(_applied_row, applied)])
        return frozenset(mark["request"] for mark in requests)

    def request(self, tables: Collection[TableName]) -> None:
        """Request a snapshot of tables. May be called by any process.

        Raises:
            LakehouseError: the commit failed.
        """
        requests = [_mark(Kind.REQUESTED, name, uuid4().hex) for name in tables]
        rows = [{"id": self._source_id, "updated_at": datetime.now(timezone.utc), **row} for row in requests]
        self._table.append(rows)

    def awaited(self) -> Awaited:
        """The unfinished snapshots, except a full load.

        Raises:
            LakehouseError: the table cannot be read.
        """
        ours = (one_of("id", self._source_id), none_of("kind", Kind.LANDED.value))
        columns = ("kind", "epoch", "request", "cp_schema", "cp_table")
        rows = self._table.rows(*ours, is_not_null("request"), columns=columns)
        rows += self._table.rows(*ours, is_null("request"), below("epoch", 0), columns=columns)
        served = {row["request"] for row in rows if row["kind"] == Kind.SERVED.value}
        ended = {row["epoch"] for row in rows if row["kind"] == Kind.ENDED.value}
        requests = {
            row["request"]: (row["cp_schema"], row["cp_table"])
            for row in rows
            if row["kind"] == Kind.REQUESTED.value and row["request"] not in served
        }
        begun = [row for row in rows if row["kind"] == Kind.PLANNED.value and row["epoch"] not in ended]
        tables = {(row["cp_schema"], row["cp_table"]) for row in begun if row["cp_table"] is not None}
        return Awaited(requests, max((row["epoch"] for row in begun), default=None), frozenset(tables))

    def planned_tables(self) -> set[TableName]:
        """All tables that any snapshot has included."""
        return {(row["cp_schema"], row["cp_table"]) for row in self._rows(Kind.PLANNED, columns=_NAME)}

    def pending_tables(self) -> frozenset[TableName]:
        """The tables of which a snapshot has not read all, or is asked for.

        Raises:
            LakehouseError: the table cannot be read.
        """
        epoch = self.newest_epoch()
        landed = self.newest_landed(epoch)
        ours = (one_of("epoch", epoch), is_not_null("cp_table"))
        planned = self._rows(Kind.PLANNED, *ours, columns=("chunk", *_NAME))
        return self.awaited().tables.union(
            (row["cp_schema"], row["cp_table"]) for row in planned if row["chunk"] > landed
        )

    def applied(self) -> list[Reload]:
        """What ad-hoc snapshots have brought to silver, oldest first. The table has to be open.

        Raises:
            LakehouseError: the table cannot be read.
        """
        columns = ("epoch", "log_epoch", "binlog_name", "binlog_pos", "safe_until_name", "safe_until_pos", *_NAME)
        rows = self._rows(Kind.APPLIED, columns=columns)
        return [_reload(row) for row in sorted(rows, key=lambda row: -row["epoch"])]

    def applied_epochs(self) -> dict[TableName, int]:
        """The epoch of the newest ad-hoc snapshot in silver, by table. The table need not be open.

        Raises:
            LakehouseError: the table cannot be read.
        """
        rows = self._rows(Kind.APPLIED, columns=("epoch", *_NAME))
        rows.sort(key=lambda row: -row["epoch"])
        return {(row["cp_schema"], row["cp_table"]): row["epoch"] for row in rows}

    def load(self, epoch: int, flavor: Flavor) -> PlannedSnapshot:
        """The plan of an epoch.

        Raises:
            LakehouseError: there is none.
        """
        rows = self._rows(Kind.PLANNED, one_of("epoch", epoch))
        rows.sort(key=lambda row: row["chunk"] or 0)
        if not rows:
            raise LakehouseError(
                f"{self._table.place} lacks the plan of a snapshot that has started in bronze",
                hint="restore it, or remove the task's bronze and silver tables and start over",
                epoch=epoch,
            )
        first = rows[0]
        gtids = first["binlog_gtid"]
        return PlannedSnapshot(
            epoch,
            Position(first["log_epoch"], first["binlog_name"], first["binlog_pos"]),
            None if gtids is None else parse_gtid_set(gtids, flavor),
            tuple(Chunk.from_json(row["chunk_info"]) for row in rows if row["chunk_info"] is not None),
            first.get("server_uuid"),  # a table that an earlier release has created lacks the column
        )

    def _rows(self, kind: Kind, *conditions: Condition, columns: Sequence[str] | None = None) -> list[MetadataRow]:
        """The rows of a kind of this source."""
        ours = (one_of("id", self._source_id), one_of("kind", kind.value))
        return self._table.rows(*ours, *conditions, columns=columns)

    def _extremes(self) -> tuple[int, int]:
        """The minimum and the maximum epoch of all plans; 0 if there are none."""
        epochs = {row["epoch"] for row in self._rows(Kind.PLANNED, columns=("epoch",))}
        return min(epochs, default=0), max(epochs, default=0)

    def _append(
        self,
        snapshot: PlannedSnapshot,
        kind: Kind,
        chunks: Sequence[Chunk],
        commit: OwnCommit | None = None,
        extra: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        begin, plain = snapshot.log_begin, {"id": self._source_id, "updated_at": datetime.now(timezone.utc)}
        common = {
            **plain,
            "kind": kind.value,
            "epoch": snapshot.epoch,
            "log_epoch": begin.epoch,
            "binlog_name": begin.binlog_file,
            "binlog_pos": begin.offset,
            "binlog_gtid": None if snapshot.gtid_set is None else str(snapshot.gtid_set),
            "landed_version": commit.version if commit else None,
            "server_uuid": snapshot.server_uuid,
        }
        rows = [{**common, **_fields(chunk)} for chunk in chunks] or [common]  # an empty plan has a begin, too
        self._table.append([*rows, *({**plain, **row} for row in extra)], self._tag(snapshot, kind, chunks))

    def _tag(self, snapshot: PlannedSnapshot, kind: Kind, chunks: Sequence[Chunk]) -> CommitTag:
        """Versions increase from plan to landed chunks to the end, and from one ad-hoc snapshot to the next."""
        landed = chunks[-1].number if chunks else 0
        upto = {Kind.PLANNED: 0, Kind.ENDED: LAST_CHUNK}.get(kind, landed)
        app = f"dmdelta:{self._task}:{self._source_id}:{'ad-hoc' if snapshot.is_ad_hoc else 'snapshot'}"
        end = Position.of_chunk(snapshot.epoch, upto + 1)
        version = snapshot.version(upto)
        return CommitTag(
            app=app,
            version=version,
            task=self._task,
            source=self._source_id,
            run=self._run,
            begin=snapshot.begin,
            end=end,
        )


def record_missed(store: ChunkStore, snapshot: PlannedSnapshot, commit: OwnCommit) -> None:
    """Record what a killed run had landed but not recorded, with bronze's newest `commit` of the snapshot.

    Raises:
        LakehouseError: the commit failed.
    """
    recorded = store.newest_landed(snapshot.epoch)
    missed = [chunk for chunk in snapshot.chunks if recorded < chunk.number < (commit.tag.end.chunk or 0)]
    if missed:
        store.landed(snapshot, missed, commit)


def _mark(kind: Kind, name: TableName | None = None, request: str | None = None) -> dict[str, Any]:
    schema, table = name or (None, None)
    return {"kind": kind.value, "cp_schema": schema, "cp_table": table, "request": request}


def _applied_row(one: Reload) -> dict[str, Any]:
    at, until = one.position, one.safe_until
    return {
        **_mark(Kind.APPLIED, one.table),
        "epoch": one.epoch,
        "log_epoch": at.epoch,
        "binlog_name": at.binlog_file,
        "binlog_pos": at.offset,
        "safe_until_name": until.binlog_file if until is not None else None,
        "safe_until_pos": until.offset if until is not None else None,
    }


def _reload(row: MetadataRow) -> Reload:
    file = row["safe_until_name"]
    return Reload(
        (row["cp_schema"], row["cp_table"]),
        row["epoch"],
        Position(row["log_epoch"], row["binlog_name"], row["binlog_pos"]),
        Position(row["log_epoch"], file, row["safe_until_pos"]) if file is not None else None,
    )


def _fields(chunk: Chunk) -> dict[str, Any]:
    return {
        "chunk": chunk.number,
        "cp_schema": chunk.schema.schema,
        "cp_table": chunk.schema.table,
        "chunk_info": chunk.to_json(),
        "estimated_rows": chunk.rows,
    }
