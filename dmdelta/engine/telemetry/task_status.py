"""The status of a task: one model for `dmdelta status`, its JSON, the control socket and the report.

`python -m dmdelta.engine.telemetry.task_status > schemas/status.schema.json` generates the schema of `--json`.
"""

import sys
from datetime import datetime
from enum import Enum
from typing import Literal

from pydantic import BaseModel, ConfigDict

VERSION: Literal[1] = 1
"""Increased when a field is removed or changes its meaning; new fields do not change it."""


class Origin(str, Enum):
    """Where a status comes from."""

    TASK = "task"
    """The running task, now."""
    LAKEHOUSE = "lakehouse"
    """dm_meta, the histories of tables and the relay folders: the newest state that was recorded."""


class Mode(str, Enum):
    """How changes are applied."""

    NORMAL = "normal"
    SAFE = "safe"


class Attention(str, Enum):
    """Why a table needs attention."""

    STOPPED = "stopped"
    """Silver cannot follow it, or its rows violate a contract; `reason` and `hint` say why."""
    WAITING = "waiting"
    """A shard that waits for others."""
    SNAPSHOT = "snapshot"
    """A snapshot is reading it."""
    LATE = "late"
    """It is behind the other tables."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True)


class SnapshotProgress(_Record):
    """The progress of the snapshot of one table."""

    chunks: int
    """Landed."""
    all_chunks: int
    """Planned."""
    rows: int
    """Landed, approximately."""
    all_rows: int
    """Estimated."""
    seconds_left: float | None = None
    """At the current rate; null before the first chunk."""


class TableStatus(_Record):
    """One silver table."""

    source_id: str
    """The source that it is replicated from."""
    table: str
    """`schema.table`, with its name at the source."""
    applied_to: str | None
    """Everything of the table below it is in silver; null before its first commit."""
    delta_version: int | None = None
    """Of the task's last commit to the silver table."""
    flushed_at: datetime | None = None
    """When the checkpoint was last written for this table; null: never."""
    phase: str | None = None
    """The table's phase in the running task (ARCHITECTURE.md); null if the task is not running."""
    mode: Mode | None = None
    """Of the last range; null if unknown."""
    attention: Attention | None = None
    """Null: the table follows the log, or the task is not running."""
    reason: str | None = None
    """Why it is stopped, with the position, or the statement that it waits before."""
    hint: str | None = None
    """The next step."""
    lag_seconds: float | None = None
    """Age of the oldest change that the table may lack; null if unknown."""
    snapshot: SnapshotProgress | None = None
    """Null: no snapshot is reading it."""


class SourceStatus(_Record):
    """One source, from its server to silver."""

    source_id: str
    """As in the spec."""
    relay: str | None
    """The last state of the relay; null if it never ran."""
    relay_at: datetime | None
    """When it was reported."""
    server_at: str | None
    """The server's end as last seen by the relay."""
    relayed_to: str | None
    """The end of the segments."""
    landed_to: str | None
    """The end of bronze."""
    newest_change: datetime | None = None
    """When the newest landed change was committed at the source, in ms; null if unknown, and from a running task."""
    applied_to: str | None
    """The global point: every table has reached it."""
    flushed_to: str | None = None
    """The global point as written by the last flush of the checkpoint."""
    exit_point: str | None = None
    """Of the last flush; null after a normal stop."""
    flushed_at: datetime | None = None
    """When the checkpoint was last flushed."""
    flushed_because: str | None = None
    """The reason of the last flush."""
    mode: Mode | None = None
    """`safe` if at least one table's last range was applied in safe mode; null if the task is not running."""
    safe_until: str | None = None
    """Safe mode ends at this position; null: it has no such end, or the mode is not `safe`."""
    safe_tables: int | None = None
    """The number of tables in safe mode."""
    lag_seconds: float | None = None
    """Age of the oldest log that is not applied to every table; null if unknown."""
    lag_bytes: int | None = None
    """Bytes of log between the global point and the server's end; null if unknown."""
    rows_per_second: float | None = None
    """Row changes applied per second, over the last minute; null if unknown."""
    sunk_to: str | None = None
    """The sink's flushed checkpoint in the target; null without a sink."""
    sink_error: str | None = None
    """Why the sink has stopped or waits for its next attempt, or why its target cannot be read."""
    sink_lag_bytes: int | None = None
    """Of the log, from there to the end of bronze; null across files."""
    sink_lacks: tuple[str, ...] = ()
    """Tables of which ad-hoc snapshots have read rows that the sink's target does not have yet."""
    validated_to: str | None = None
    """Changes before it were compared with the source; null without a validator."""
    validator_pending: int | None = None
    """Rows that currently differ."""
    validator_errors: int | None = None
    """Errors in the state `new`."""
    validator_trouble: str | None = None
    """Why the validator is not running."""
    stop_waits_for: tuple[str, ...] = ()
    """Stages, tables in flight and the checkpoint that a stop or pause still waits for; empty: none is in progress."""


class TaskStatus(_Record):
    """The status of a task."""

    version: Literal[1] = VERSION
    """The version of this schema."""
    task: str
    """Its name."""
    origin: Origin
    """Where the status comes from."""
    at: datetime
    """When the status was read."""
    state: str | None
    """`starting`, `running`, `paused`, `retrying`, `stopped` or `failed`; null if the task never reported a state."""
    state_at: datetime | None
    """Since when."""
    process: str | None
    """Host and process id of the run."""
    error: str | None
    """Why the task failed, or why a table is stopped."""
    hint: str | None
    """The next step."""
    sources: tuple[SourceStatus, ...]
    """In the order of the spec; empty while the task starts."""
    tables: tuple[TableStatus, ...]
    """Every table that the task has written, or that needs attention."""


def status_schema() -> str:
    """The content of `schemas/status.schema.json`."""
    from dmdelta.model.model_schema import schema_text  # noqa: PLC0415 - no command needs it

    return schema_text(TaskStatus, _Record, "serialization")


if __name__ == "__main__":
    sys.stdout.write(status_schema())
