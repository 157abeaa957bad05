"""The status of a task as recorded: in its relays' status, bronze's history, the last checkpoint and dm_meta."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dmdelta.bronze.progress import landing_app
from dmdelta.checkpoint import checkpoint_rows
from dmdelta.config import SourceConfig, TaskSpec
from dmdelta.engine.control.table import ControlTable
from dmdelta.engine.task.task import Task, open_metadata
from dmdelta.engine.telemetry.task_status import Origin, SourceStatus, TableStatus, TaskStatus
from dmdelta.errors import UnsupportedTable
from dmdelta.lakehouse.access.local_root import local_table
from dmdelta.lakehouse.access.object_store import object_table
from dmdelta.lakehouse.history import OwnCommit, newest_own_commit
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.position import Position
from dmdelta.model.spark_sql import literal
from dmdelta.source.relay.relay_task import RelayStatus, read_status

if TYPE_CHECKING:
    from dmdelta.engine.validation.admin import ValidatorStatus


def stored_status(spec: TaskSpec) -> TaskStatus:
    """Query the relay folders, the lakehouse and the sink's target, but not the sources.

    Raises:
        LakehouseError: a table cannot be read.
    """
    task = open_metadata(spec)
    rows = checkpoint_rows(task.spark, task.lakehouse, spec.name)
    points = {row["id"]: row for row in rows if row["is_global"]}
    validators = _validators(task)
    sources = tuple(
        _validated(_source(task, source, points.get(source.source_id)), validators) for source in spec.sources
    )
    tables = tuple(
        TableStatus(
            source_id=row["id"],
            table=f"{row['cp_schema']}.{row['cp_table']}",
            applied_to=str(max(_position(row), _position(points[row["id"]]))),  # below the global one, all is applied
            delta_version=row["delta_version"],
            flushed_at=row["updated_at"],
        )
        for row in rows
        if not row["is_global"]
    )
    reported = ControlTable(task.spark, task.lakehouse, spec.name).last_reported()
    return TaskStatus(
        task=spec.name,
        origin=Origin.LAKEHOUSE,
        at=datetime.now(timezone.utc),
        state=reported.state.value if reported else None,
        state_at=reported.at if reported else None,
        process=reported.process if reported else None,
        error=reported.error if reported else None,
        hint=reported.hint if reported else None,
        sources=sources,
        tables=tables,
    )


def _source(task: Task, source: SourceConfig, point: dict[str, Any] | None) -> SourceStatus:
    app = landing_app(task.spec.name, source.source_id)
    landed = newest_own_commit(task.spark, task.lakehouse.bronze, app)
    relay = read_status(Path(task.spec.relay_dir(source)) / source.source_id)
    return SourceStatus(
        source_id=source.source_id,
        relay=relay.state if relay else None,
        relay_at=datetime.fromtimestamp(relay.at, tz=timezone.utc) if relay else None,
        server_at=_server_at(relay),
        relayed_to=str(Position(relay.epoch, relay.binlog_file, relay.offset)) if relay and relay.binlog_file else None,
        landed_to=str(landed.tag.end) if landed else None,
        newest_change=_newest_change(task, landed) if landed else None,
        applied_to=_place(point, "") if point else None,
        flushed_to=_place(point, "") if point else None,
        exit_point=_place(point, "exit_point_") if point and point["exit_point_binlog_name"] else None,
        flushed_at=point["updated_at"] if point else None,
        flushed_because=point["reason"] if point else None,
        **_sink(task, source, landed.tag.end if landed else None),
    )


def _validators(task: Task) -> Mapping[str, "ValidatorStatus"]:
    """The status of each source's validator, by source."""
    if task.spec.validator.mode == "none":
        return {}
    from dmdelta.engine.validation.admin import validator_status  # noqa: PLC0415 - takes a tenth of a second

    return {each.source_id: each for each in validator_status(task)}


def _validated(source: SourceStatus, validators: Mapping[str, "ValidatorStatus"]) -> SourceStatus:
    validator = validators.get(source.source_id)
    if validator is None:
        return source
    return source.model_copy(
        update={
            "validated_to": validator.validated_to,
            "validator_pending": validator.pending_rows,
            "validator_errors": validator.new_errors,
            "validator_trouble": validator.trouble,
        }
    )


def _sink(task: Task, source: SourceConfig, landed: Position | None) -> dict[str, Any]:
    """The fields of the sink; none without one."""
    config = task.spec.sink
    if config is None:
        return {}
    from dmdelta.engine.inspect.stored_sink import read_sink  # noqa: PLC0415 - takes a fifth of a second

    sink = read_sink(task, config, source.source_id, landed)
    return {
        "sunk_to": sink.position,
        "sink_error": sink.error,
        "sink_lag_bytes": sink.lag_bytes,
        "sink_lacks": sink.lacks,
    }


def _newest_change(task: Task, landed: OwnCommit) -> datetime | None:
    """When the last row of the newest landing was committed at the source."""
    bronze, newest = task.lakehouse.bronze, landed.tag
    reader = local_table(task.spark, bronze) or object_table(task.spark, bronze)
    with suppress(UnsupportedTable):
        if reader is not None:
            text = reader.newest_in(landed.version, "committed_at")
            return datetime.fromisoformat(text.replace("Z", "+00:00")) if text is not None else None
    # File statistics keep the query short.
    statement = (
        f"SELECT date_trunc('MILLISECOND', max(committed_at)) FROM {bronze} WHERE source_id = {literal(newest.source)} "
        f"AND epoch = {newest.begin.epoch} AND seq >= {newest.begin.seq}"
    )
    with wrapped(bronze, "reading"):
        ((moment,),) = task.spark.sql(statement).collect()
    return moment.astimezone(timezone.utc) if moment is not None else None


def _server_at(relay: RelayStatus | None) -> str | None:
    end = relay.server_end if relay else None
    return f"{end.binlog_file}:{end.offset}" if end else None


def _place(row: dict[str, Any], prefix: str) -> str:
    return str(_position(row, prefix))


def _position(row: dict[str, Any], prefix: str = "") -> Position:
    return Position(row[f"{prefix}epoch"], row[f"{prefix}binlog_name"], row[f"{prefix}binlog_pos"])
