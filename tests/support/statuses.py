"""Task statuses, as a running task reports them."""

from datetime import datetime, timedelta, timezone
from typing import Any

from dmdelta.engine.telemetry.task_status import Mode, Origin, SourceStatus, TableStatus, TaskStatus

AT = datetime(2026, 11, 21, 10, 0, 0, tzinfo=timezone.utc)


def source(**fields: Any) -> SourceStatus:
    """A streaming source."""
    position = "1/binlog.000042:{}".format
    known: dict[str, Any] = {
        "source_id": "shop-primary",
        "relay": "streaming",
        "relay_at": AT,
        "server_at": "binlog.000042:99120",
        "relayed_to": position(99120),
        "landed_to": position(98200),
        "applied_to": position(97110),
        "flushed_to": position(90000),
        "flushed_at": AT,
        "flushed_because": "interval",
        "mode": Mode.NORMAL,
        "safe_tables": 0,
        "lag_seconds": 1.25,
        "lag_bytes": 2010,
        "rows_per_second": 1234.5,
    }
    return SourceStatus(**{**known, **fields})


def table(name: str, **fields: Any) -> TableStatus:
    """A table in the phase `following`."""
    known: dict[str, Any] = {
        "source_id": "shop-primary",
        "table": name,
        "applied_to": "1/binlog.000042:97110",
        "delta_version": 12,
        "flushed_at": AT,
        "phase": "following",
        "mode": Mode.NORMAL,
    }
    return TableStatus(**{**known, **fields})


def task(sources: Any, tables: Any = (), **fields: Any) -> TaskStatus:
    """A running task."""
    known: dict[str, Any] = {
        "task": "shop",
        "origin": Origin.TASK,
        "at": AT + timedelta(seconds=5),
        "state": "running",
        "state_at": AT - timedelta(hours=1),
        "process": "host:4711",
        "error": None,
        "hint": None,
    }
    return TaskStatus(**{**known, "sources": tuple(sources), "tables": tuple(tables), **fields})
