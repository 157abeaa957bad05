"""The table `dm_meta.<task>_checkpoint`: one commit per flush, the newest row of each key is current.

A row's key is source (`id`), schema and table; the global row has empty names, as in DM. The rows of the last `KEPT`
flushes stay as the history of the task's progress.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812 - Spark's convention

from dmdelta.checkpoint.points import FlushReason, Point, Snapshot, StoredPoints, TablePoint
from dmdelta.failpoint import CrashPoint, reach
from dmdelta.lakehouse.access.commit_tag import CommitTag
from dmdelta.lakehouse.access.interface import one_of
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.metadata_table import COMPACT_EVERY, MetadataRow, MetadataTable, TaskMetadata
from dmdelta.lakehouse.session import clone_session
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName

KEPT = 1_000
"""The flushes whose rows are kept, eight hours at the default interval: a start reads all rows."""
GLOBAL: TableName = ("", "")
"""Schema and table of a global row."""

CHECKPOINT = MetadataTable(
    "checkpoint",
    {
        "id": T.StringType(),
        "cp_schema": T.StringType(),
        "cp_table": T.StringType(),
        "is_global": T.BooleanType(),
        "binlog_name": T.StringType(),
        "binlog_pos": T.LongType(),
        "binlog_gtid": T.StringType(),
        "epoch": T.IntegerType(),
        "exit_point_binlog_name": T.StringType(),
        "exit_point_binlog_pos": T.LongType(),
        "exit_point_binlog_gtid": T.StringType(),
        "exit_point_epoch": T.IntegerType(),
        "table_info": T.StringType(),
        "delta_version": T.LongType(),
        "reason": T.StringType(),
        "flush_id": T.LongType(),
        "created_at": T.TimestampType(),
        "updated_at": T.TimestampType(),
    },
    keys=("id", "cp_schema", "cp_table"),
    order="flush_id",
)


class CheckpointStore:
    """The rows of one source of a task. Has its own session; not thread-safe."""

    def __init__(self, spark: SparkSession, lakehouse: Lakehouse, task: str, source_id: str, run: str) -> None:
        self._table = CHECKPOINT.of(clone_session(spark), lakehouse, task)
        self._task = task
        self.source_id = source_id
        self._run = run
        self._flush_id = 0
        self._begin: Position | None = None
        self._created: dict[TableName, datetime] = {}
        self._rows: Mapping[TableName, dict[str, Any]] = {}

    def open(self) -> StoredPoints | None:
        """Create the table if it does not exist, and read the points of the source's last flush.

        Raises:
            ForeignTable: the existing table does not belong to this task.
            LakehouseError: it cannot be created or read.
        """
        rows = _newest_rows(self._table, self.source_id) if self._table.create() else []
        self._created = {_name(row): row["created_at"] for row in rows}
        self._rows = {_name(row): _shown(row) for row in rows}
        stored = _stored(rows)
        if stored is not None:
            self._flush_id = stored.flush_id
            self._begin = stored.global_point.position
        return stored

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The newest flushed row of the source and of each table, as `checkpoint_rows` reads them."""
        return sorted(self._rows.values(), key=display_order)

    def write(self, snapshot: Snapshot, changed: Sequence[TablePoint], reason: FlushReason) -> None:
        """Append the global row and those of the `changed` tables in one commit; at times also the other tables' rows,
        so that the rows of old flushes can be removed.

        Raises:
            Fenced: another runner of the task has flushed meanwhile.
            LakehouseError: the commit failed.
        """
        flush_id = self._flush_id + 1
        now = datetime.now(timezone.utc)
        created = {**self._created}
        common = {"id": snapshot.source_id, "reason": reason.value, "flush_id": flush_id, "updated_at": now}
        whole = dict(zip(("cp_schema", "cp_table"), GLOBAL, strict=True))
        rows = [{**common, **whole, "is_global": True, **_at(snapshot.global_point), **_exit(snapshot.exit_point)}]
        rows += [
            {**common, "is_global": False, **_at(table.point), "table_info": table.table_info}
            | {"cp_schema": table.schema, "cp_table": table.table, "delta_version": table.delta_version}
            for table in changed
        ]
        for row in rows:
            row["created_at"] = created.setdefault(_name(row), now)
        is_compacted = flush_id % COMPACT_EVERY == 0
        if is_compacted:
            written = set(map(_name, rows))
            rows += [{**row, "flush_id": flush_id} for name, row in self._rows.items() if name not in written]
        reach(CrashPoint.CHECKPOINT_MID_FLUSH)
        self._table.append(rows, self._tag(flush_id, snapshot))
        self._flush_id = flush_id
        self._begin = snapshot.global_point.position
        self._created = created
        self._rows = {**self._rows, **{_name(row): _shown(row) for row in rows}}
        if is_compacted:
            self._shorten(flush_id)

    def _shorten(self, flush_id: int) -> None:
        """Remove the rows of old flushes, after one that has the rows of all tables; compact the others.

        Raises:
            LakehouseError: the table cannot be written.
        """

        def is_old(literal: Callable[[str], str]) -> str:
            return f"id = {literal(self.source_id)} AND flush_id <= {flush_id - KEPT}"

        self._table.shorten(is_old if flush_id > KEPT else None)

    def _tag(self, flush_id: int, snapshot: Snapshot) -> CommitTag:
        end = snapshot.global_point
        return CommitTag(
            app=f"dmdelta:{self._task}:{self.source_id}:checkpoint",
            version=flush_id,
            task=self._task,
            source=self.source_id,
            run=self._run,
            begin=self._begin or end.position,
            end=end.position,
            gtid_set=end.gtid_set,
        )


def load_points(spark: SparkSession, lakehouse: Lakehouse, task: str, source_id: str) -> StoredPoints | None:
    """The points of the last flush of a source, read-only; None if there was none.

    Raises:
        LakehouseError: the table cannot be read.
    """
    return _stored(_newest_rows(CHECKPOINT.of(spark, lakehouse, task), source_id))


def checkpoint_rows(spark: SparkSession, lakehouse: Lakehouse, task: str) -> list[dict[str, Any]]:
    """The newest row of every source and table, the global ones first, for display.

    Raises:
        LakehouseError: the table cannot be read.
    """
    rows = _newest_rows(CHECKPOINT.of(spark, lakehouse, task), None)
    return sorted(map(_shown, rows), key=display_order)


def _name(row: Mapping[str, Any]) -> TableName:
    return row["cp_schema"], row["cp_table"]


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with all columns."""
    return {name: row.get(name) for name in CHECKPOINT.columns}


def display_order(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """The sort key of `checkpoint_rows`: by source, the global row before those of tables."""
    return (row["id"], row["cp_schema"], row["cp_table"])


def _newest_rows(table: TaskMetadata, source_id: str | None) -> list[MetadataRow]:
    return table.newest() if source_id is None else table.newest(one_of("id", source_id))


def _stored(rows: Sequence[MetadataRow]) -> StoredPoints | None:
    whole = next((row for row in rows if row["is_global"]), None)
    if whole is None:
        return None
    tables = [_table_point(row) for row in rows if not row["is_global"]]
    return StoredPoints(
        flush_id=whole["flush_id"],
        reason=FlushReason(whole["reason"]),
        global_point=_point(whole, ""),
        tables={table.name: table for table in tables},
        exit_point=None if whole["exit_point_binlog_name"] is None else _point(whole, "exit_point_"),
    )


def _table_point(row: MetadataRow) -> TablePoint:
    return TablePoint(row["cp_schema"], row["cp_table"], _point(row, ""), row["delta_version"], row["table_info"])


def _point(row: MetadataRow, prefix: str) -> Point:
    position = Position(row[f"{prefix}epoch"], row[f"{prefix}binlog_name"], row[f"{prefix}binlog_pos"])
    return Point(position, row[f"{prefix}binlog_gtid"])


def _at(point: Point) -> Mapping[str, Any]:
    here = point.position
    return {
        "epoch": here.epoch,
        "binlog_name": here.binlog_file,
        "binlog_pos": here.offset,
        "binlog_gtid": point.gtid_set,
    }


def _exit(point: Point | None) -> Mapping[str, Any]:
    return {f"exit_point_{name}": value for name, value in _at(point).items()} if point else {}
