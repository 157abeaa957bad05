"""The status of a running task, from memory and the relay folders: no query, no commit."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from dmdelta.checkpoint import ORIGIN, FlushReason, TablePoint
from dmdelta.engine.apply.table_state import Phase, TableState
from dmdelta.engine.control.state import ReportedState, process_name
from dmdelta.engine.run.pipeline import SourcePipeline, stats_of
from dmdelta.engine.run.stopping import awaited
from dmdelta.engine.telemetry.counters import TableLoad
from dmdelta.engine.telemetry.observations import Observations
from dmdelta.engine.telemetry.stats import SourceStats
from dmdelta.engine.telemetry.task_status import (
    Attention,
    Mode,
    Origin,
    SnapshotProgress,
    SourceStatus,
    TableStatus,
    TaskStatus,
)
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.quality.pending import ErrorState
from dmdelta.source.relay.relay_task import read_status

LATE_SECONDS = 30.0
"""A table that may lack older changes than this, and than three times the target freshness, is late."""
_ATTENTION = {
    Phase.STOPPED: Attention.STOPPED,
    Phase.WAITING: Attention.WAITING,
    Phase.SNAPSHOT: Attention.SNAPSHOT,
}


@dataclass(frozen=True, slots=True)
class RunningSources:
    """The sources of a run, in its current attempt or in the one before a pause.

    Attributes:
        loads: the progress of snapshots, by `schema.table`.
        freshness: the target freshness, in seconds.
    """

    pipelines: Sequence[SourcePipeline]
    observations: Observations
    loads: Mapping[str, TableLoad]
    freshness: float


def live_status(task: str, reported: ReportedState, running: RunningSources) -> TaskStatus:
    """The status of a task whose sources run or are paused."""
    unclaimed = {name: load for name, load in running.loads.items() if load.chunks < load.all_chunks}
    sources: list[SourceStatus] = []
    tables: list[TableStatus] = []
    for pipeline in running.pipelines:
        stats = stats_of(pipeline)
        sources.append(_source(pipeline, stats, running))
        loads = {name: load for name, load in unclaimed.items() if pipeline.relaying.rules.wanted(*_name_of(name))}
        unclaimed = {name: load for name, load in unclaimed.items() if name not in loads}
        tables += _tables(pipeline, loads, running)
    stopped = next((table for table in tables if table.attention is Attention.STOPPED), None)
    return TaskStatus(
        task=task,
        origin=Origin.TASK,
        at=datetime.now(timezone.utc),
        state=reported.state.value,
        state_at=reported.at,
        process=process_name(),
        error=reported.error or (stopped.reason if stopped else None),
        hint=reported.hint or (stopped.hint if stopped else None),
        sources=tuple(sources),
        tables=tuple(tables),
    )


def _source(pipeline: SourcePipeline, stats: SourceStats, running: RunningSources) -> SourceStatus:
    states = [state for state in pipeline.applying.scheduler.states if state.is_safe]
    relay, positions = read_status(pipeline.relaying.folder), stats.positions
    server, relayed = positions.get("server"), positions.get("relayed")
    flush = next((row for row in pipeline.store.rows if row["is_global"]), None)
    sinking, validator = pipeline.sinking, pipeline.validator
    sunk = positions["sunk"] if positions.get("sunk", ORIGIN) != ORIGIN else None
    return SourceStatus(
        source_id=pipeline.source_id,
        relay=relay.state if relay else None,
        relay_at=datetime.fromtimestamp(relay.at, tz=timezone.utc) if relay else None,
        server_at=f"{server.binlog_file}:{server.offset}" if server else None,
        relayed_to=_text(relayed),
        landed_to=_text(positions.get("landed")),
        applied_to=_text(positions.get("applied")),
        flushed_to=_text(positions.get("flushed")),
        exit_point=_exit_point(flush),
        flushed_at=flush["updated_at"] if flush else None,
        flushed_because=flush["reason"] if flush else None,
        mode=Mode.SAFE if states else Mode.NORMAL,
        safe_until=_text(max(filter(None, map(_safe_until, states)), default=None)),
        safe_tables=len(states),
        lag_seconds=running.observations.lag(pipeline.source_id, positions.get("applied")),
        lag_bytes=_lag_bytes(stats, server, relayed),
        rows_per_second=running.observations.rows_per_second(pipeline.source_id),
        sunk_to=_text(sunk),
        sink_error=sinking.trouble.message if sinking is not None and sinking.trouble is not None else None,
        sink_lag_bytes=_bytes_between(sunk, positions.get("landed")),
        sink_lacks=sinking.lacking if sinking is not None else (),
        validated_to=_text(positions.get("validated")),
        validator_pending=stats.validator.pending if stats.validator else None,
        validator_errors=stats.validator.errors.get(ErrorState.NEW, 0) if stats.validator else None,
        validator_trouble=validator.trouble if validator is not None else None,
        stop_waits_for=awaited(pipeline),
    )


def _tables(pipeline: SourcePipeline, loads: Mapping[str, TableLoad], running: RunningSources) -> Iterator[TableStatus]:
    points = pipeline.applying.scheduler.tables.points
    reached = {point.name: point for point in points.snapshot(FlushReason.INTERVAL).tables}
    states = {state.name: state for state in pipeline.applying.scheduler.states}
    flushed = {(row["cp_schema"], row["cp_table"]): row["updated_at"] for row in pipeline.store.rows}
    pending = points.pending()
    for name in sorted({*reached, *states, *map(_name_of, loads)}):
        text = ".".join(name)
        point, state, load = reached.get(name), states.get(name), loads.get(text)
        lag = _lag(pipeline, running, point) if name in pending else None
        is_late = lag is not None and lag > max(LATE_SECONDS, 3 * running.freshness)
        yield TableStatus(
            source_id=pipeline.source_id,
            table=text,
            applied_to=_text(point.point.position) if point else None,
            delta_version=point.delta_version if point else None,
            flushed_at=flushed.get(name),
            phase=(state.phase if state else Phase.FOLLOWING).value,
            mode=Mode.SAFE if state is not None and state.is_safe else Mode.NORMAL,
            attention=_attention(state, is_late=is_late, is_loading=load is not None),
            reason=_reason(state),
            hint=state.error.hint if state is not None and state.error is not None else None,
            lag_seconds=lag,
            snapshot=_snapshot(load) if load is not None else None,
        )


def _attention(state: TableState | None, *, is_late: bool, is_loading: bool) -> Attention | None:
    found = _ATTENTION.get(state.phase) if state is not None else None
    if found is None and is_loading:
        return Attention.SNAPSHOT
    return found or (Attention.LATE if is_late else None)


def _reason(state: TableState | None) -> str | None:
    if state is not None and state.error is not None:
        facts = ", ".join(f"{key}={value}" for key, value in state.error.context.items())
        return state.error.message + (f" ({facts})" if facts else "")
    if state is not None and state.waits is not None:
        return state.waits.text or "a change of its structure"
    return None


def _lag(pipeline: SourcePipeline, running: RunningSources, point: TablePoint | None) -> float | None:
    return running.observations.lag(pipeline.source_id, point.point.position if point else None)


def _snapshot(load: TableLoad) -> SnapshotProgress:
    return SnapshotProgress(
        chunks=load.chunks,
        all_chunks=load.all_chunks,
        rows=load.rows,
        all_rows=load.all_rows,
        seconds_left=load.seconds_left,
    )


def _safe_until(state: TableState) -> Position | None:
    planned = state.plan.safe_until if state.plan is not None else None
    return max(filter(None, (state.safe_until, state.resync_until, planned)), default=None)


def _lag_bytes(stats: SourceStats, server: Position | None, relayed: Position | None) -> int | None:
    """Bytes of log after the global point: in segments, and on the server after them."""
    waiting, missing = stats.waiting_bytes.get("applied"), _bytes_between(relayed, server)
    return waiting + missing if waiting is not None and missing is not None else None


def _bytes_between(begin: Position | None, end: Position | None) -> int | None:
    """Bytes of log from one position to another, within one file."""
    if begin is None or end is None or (begin.epoch, begin.binlog_file) != (end.epoch, end.binlog_file):
        return None
    return max(0, end.offset - begin.offset)


def _exit_point(row: Mapping[str, Any] | None) -> str | None:
    if row is None or not row["exit_point_binlog_name"]:
        return None
    return str(Position(row["exit_point_epoch"], row["exit_point_binlog_name"], row["exit_point_binlog_pos"]))


def _name_of(text: str) -> TableName:
    schema, _, table = text.partition(".")
    return schema, table


def _text(position: Position | None) -> str | None:
    return str(position) if position is not None else None
