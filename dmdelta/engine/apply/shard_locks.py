"""The tables `dm_meta.<task>_shard_ddl_locks` (silver's) and `…_sink_shard_ddl_locks`: the shard DDL locks of a task,
and the operators' decisions on them.

Append-only; the newest row of a lock is in effect. They are a view for operators: silver's commits and the sink's
target are authoritative.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

from pyspark.sql import types as T  # noqa: N812 - Spark's convention

from dmdelta.engine.task.task import Task
from dmdelta.errors import ConfigError
from dmdelta.lakehouse.access.interface import one_of
from dmdelta.lakehouse.metadata_table import MetadataRow, MetadataTable, TaskMetadata
from dmdelta.lakehouse.session import clone_session
from dmdelta.logging import get_logger
from dmdelta.model.mysql_sql import quoted_name
from dmdelta.model.schema import TableName
from dmdelta.sharding import Action, Coordination, Shard, ShardSides, ShownLock

log = get_logger(__name__)
POLL_SECONDS = 3.0
"""How often a running task polls for decisions while shards wait."""
_TEXTS = T.ArrayType(T.StringType())
_COLUMNS = {
    "id": T.StringType(),
    "target_schema": T.StringType(),
    "target_table": T.StringType(),
    "mode": T.StringType(),
    "owner": T.StringType(),
    "ddls": _TEXTS,
    "ready": _TEXTS,
    "remain": _TEXTS,
    "conflicts": _TEXTS,
    "state": T.StringType(),
    "at": T.TimestampType(),
}
SHARD_DDL_LOCKS = MetadataTable("shard_ddl_locks", _COLUMNS, keys=("id", "owner"), order="at")
SINK_SHARD_DDL_LOCKS = MetadataTable("sink_shard_ddl_locks", _COLUMNS, keys=("id", "owner"), order="at")
SILVER, SINK = "silver", "sink"
_TABLES = {SILVER: SHARD_DDL_LOCKS, SINK: SINK_SHARD_DDL_LOCKS}
WAITING, RESOLVED = "waiting", "resolved"


@dataclass(frozen=True, slots=True)
class LockRow:
    """A lock, as shown by `shard-ddl-lock list`.

    Attributes:
        id: task-`schema`.`table` of the merged table, in DM's format.
        side: whose merged table waits: `silver` or `sink`.
        owner: the shard that came first.
        ddls: the waiting statements.
        ready, remain: shards that have reached the statement, and those that have not.
        conflicts: shards that wait with a different statement.
    """

    id: str
    side: str
    owner: str
    ddls: tuple[str, ...]
    ready: tuple[str, ...]
    remain: tuple[str, ...]
    conflicts: tuple[str, ...]

    @classmethod
    def of(cls, row: Mapping[str, Any], side: str) -> "LockRow":
        """A row of a side's table."""
        lists = ("ddls", "ready", "remain", "conflicts")
        return cls(row["id"], side, row["owner"], *(tuple(row[name]) for name in lists))


def lock_id(task: str, target: TableName) -> str:
    """A lock's name in DM's format: the task and the merged table."""
    return f"{task}-{quoted_name(*target)}"


@dataclass(slots=True)
class LockTable:
    """The table of one side of a task. Has its own session; not thread-safe."""

    table: TaskMetadata
    side: str

    @classmethod
    def of(cls, task: Task, side: str) -> "LockTable":
        """The table of a side, in the task's session."""
        return cls(_TABLES[side].of(task.spark, task.lakehouse, task.spec.name), side)

    def waiting(self) -> list[MetadataRow]:
        """The unresolved locks.

        Raises:
            LakehouseError: the table cannot be read.
        """
        rows = self.table.newest(one_of("state", WAITING, RESOLVED))
        return sorted((row for row in rows if row["state"] == WAITING), key=lambda row: (row["id"], row["at"]))

    def decisions(self, since: datetime) -> list[MetadataRow]:
        """The decisions after `since`, in order.

        Raises:
            LakehouseError: the table cannot be read.
        """
        rows = self.table.rows(one_of("state", *(action.value for action in Action)))
        return sorted((row for row in rows if row["at"] > since), key=lambda row: row["at"])

    def append(self, rows: Sequence[dict[str, object]]) -> None:
        """
        Raises:
            ForeignTable: the existing table belongs to another task.
            LakehouseError: the commit failed.
        """
        self.table.create()
        now = datetime.now(timezone.utc)
        self.table.append([{"at": now, **row} for row in rows])


@dataclass(slots=True)
class ShardLocks:
    """Publishes the locks of a side, and applies the decisions on them.

    Attributes:
        sources: number of sources.
        since: decisions up to this time have been applied.
        last_reported: the locks that the table lists as waiting, by lock and owner; None for those of an earlier run.
        earlier: the locks of an earlier run.
    """

    table: LockTable
    shards: Coordination
    sources: int
    since: datetime
    last_reported: dict[tuple[str, str], ShownLock | None] = field(default_factory=dict)
    earlier: Mapping[tuple[str, str], LockRow] = field(default_factory=dict)
    _polled_at: float = 0.0

    def current(self) -> list[LockRow]:
        """The waiting locks, including those of an earlier run that may reappear. Any thread may call it."""
        rows = [LockRow.of(self._row(shown), self.table.side) for shown in self.shards.locks()]
        known = {(row.id, row.owner) for row in rows}
        unseen = [key for key, shown in list(self.last_reported.items()) if shown is None and key not in known]
        return sorted([*rows, *(self.earlier[key] for key in unseen)], key=lambda row: (row.id, row.owner))

    def poll_decisions(self) -> None:
        """Let the next `poll` apply new decisions. Any thread may call it."""
        self._polled_at = 0.0

    def poll(self) -> None:
        """Publish changed locks, and apply new decisions.

        Raises:
            LakehouseError: the table cannot be read or written.
        """
        task = self.table.table.task
        locks = {(lock_id(task, shown.target), str(shown.lock.owner)): shown for shown in self.shards.locks()}
        rows = [self._row(shown) for key, shown in locks.items() if self.last_reported.get(key) != shown]
        # Locks of an earlier run may reappear until the whole log has been applied.
        incomplete = self.shards.heard < self.sources
        resolved = [
            key for key, shown in self.last_reported.items() if key not in locks and not (shown is None and incomplete)
        ]
        rows += [{"id": name, "owner": owner, "state": RESOLVED} for name, owner in resolved]
        if rows:
            self.table.append(rows)
            self.last_reported = {
                **{key: shown for key, shown in self.last_reported.items() if key not in resolved},
                **locks,
            }
        if locks and time.monotonic() > self._polled_at + POLL_SECONDS:
            self._polled_at = time.monotonic()
            self._take_decisions()

    def _take_decisions(self) -> None:
        for row in self.table.decisions(self.since):
            self.since = max(self.since, row["at"])
            target = (row["target_schema"], row["target_table"])
            outcome = self.shards.decide(target, Action(row["state"]), row["owner"])
            log.info("lock decided", id=row["id"], owner=row["owner"], action=row["state"], found=outcome)

    def _row(self, shown: ShownLock) -> dict[str, Any]:
        schema, table = shown.target
        mode, lock = self.shards.mode, shown.lock
        return {
            "id": lock_id(self.table.table.task, shown.target),
            "target_schema": schema,
            "target_table": table,
            "mode": mode.value if mode else None,
            "owner": str(lock.owner),
            "ddls": list(shown.statements),
            "ready": _texts(lock.ready),
            "remain": _texts(lock.remain),
            "conflicts": _texts(lock.conflicts),
            "state": WAITING,
        }


def open_shard_locks(task: Task, sides: ShardSides) -> tuple[ShardLocks, ...]:
    """The locks of each side, with decisions made while the task did not run; none if shard DDL is not coordinated.

    Raises:
        LakehouseError: a table cannot be read.
    """
    every = {SILVER: sides.silver, SINK: sides.sink}
    coordinated = {side: shards for side, shards in every.items() if shards is not None and shards.mode is not None}
    return tuple(_open_side(task, side, shards) for side, shards in coordinated.items())


def _open_side(task: Task, side: str, shards: Coordination) -> ShardLocks:
    table = LockTable.of(replace(task, spark=clone_session(task.spark)), side)
    waiting = {(row["id"], row["owner"]): row for row in table.waiting()}
    since = min((row["at"] for row in waiting.values()), default=datetime.now(timezone.utc))
    for row in table.decisions(since) if waiting else ():
        since = max(since, row["at"])
        lock = waiting.get((row["id"], row["owner"]))
        if lock is not None and row["at"] > lock["at"]:
            target = (row["target_schema"], row["target_table"])
            shards.decide_ahead(target, Action(row["state"]), lock["ready"], lock["ddls"])
    earlier = {key: LockRow.of(row, side) for key, row in waiting.items()}
    return ShardLocks(table, shards, len(task.spec.sources), since, dict.fromkeys(waiting), earlier)


def list_locks(task: Task) -> list[LockRow]:
    """The waiting locks of a task, as last reported by its run.

    Raises:
        LakehouseError: the table cannot be read.
    """
    tables = [LockTable.of(task, side) for side in _TABLES]
    return [LockRow.of(row, table.side) for table in tables for row in table.waiting()]


def unlock(task: Task, id_: str, action: Action, owner: str | None) -> list[LockRow]:
    """Decide on a lock of silver, the sink or both: its statement is applied now, or skipped. A run does so in seconds.

    Args:
        owner: the shard whose statement is meant, if several wait with different ones.

    Raises:
        ConfigError: there is no such lock, or a side has several, or the sink would have to skip a statement.
        LakehouseError: the decision cannot be written.
    """
    waiting = [(table, row) for table in (LockTable.of(task, side) for side in _TABLES) for row in table.waiting()]
    matching = [(table, row) for table, row in waiting if row["id"] == id_ and owner in (None, row["owner"])]
    sides = [table.side for table, _ in matching]
    if not matching or len(sides) != len(set(sides)):
        known = ", ".join(f"{row['id']} of {row['owner']} ({table.side})" for table, row in waiting) or "none"
        which = "several such locks" if matching else "no such lock"
        raise ConfigError(f"there are {which}: {id_}", hint=f"select one with its --owner; existing locks: {known}")
    if action is Action.SKIP:
        matching = [(table, row) for table, row in matching if table.side == SILVER]
        if not matching:
            raise ConfigError(
                f"only the sink waits with {id_}, and its target cannot omit a column of one shard",
                hint="use --action exec, or change the other shards",
            )
    for table, row in matching:
        kept = {name: row[name] for name in ("id", "target_schema", "target_table", "mode", "owner")}
        table.append([{**kept, "state": action.value}])
    return [LockRow.of(row, table.side) for table, row in matching]


def _texts(shards: Sequence[Shard]) -> list[str]:
    return [str(shard) for shard in shards]
