"""The status of a task for a terminal, at most 100 columns wide."""

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dmdelta.engine.telemetry.task_status import (
    Attention,
    Mode,
    Origin,
    SnapshotProgress,
    SourceStatus,
    TableStatus,
    TaskStatus,
)

WIDTH = 100
_STATE_STYLES = {"running": "green", "failed": "bold red", "retrying": "yellow", "paused": "yellow"}
_ATTENTION_STYLES = {Attention.STOPPED: "bold red", Attention.WAITING: "yellow", Attention.LATE: "yellow"}
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def view_console() -> Console:
    """A console of the terminal's width, but at most 100 columns."""
    console = Console(highlight=False)
    width = min(WIDTH, console.width) if sys.stdout.isatty() else WIDTH
    return Console(width=width, highlight=False)


def status_view(status: TaskStatus, *, all_tables: bool) -> RenderableType:
    """The state of the task, its sources, and the tables that need attention, or all tables."""
    parts: list[RenderableType] = [_headline(status)]
    if status.error not in {table.reason for table in status.tables}:  # else it is shown with its table
        parts += [_labelled("error", status.error, "bold red")] if status.error else []
        parts += [_labelled("hint", status.hint, "bold")] if status.hint else []
    for source in status.sources:
        parts += ["", *_source(source)]
    tables = [table for table in status.tables if all_tables or table.attention is not None]
    if tables:
        several = len(status.sources) > 1
        parts += ["", _tables_title(status, tables, all_tables=all_tables)]
        parts += [_tables(tables, several=several, all_tables=all_tables)]
    return Group(*parts)


def _headline(status: TaskStatus) -> Text:
    state = status.state or "no state reported"
    line = Text.assemble(("task ", "dim"), (status.task, "bold"), "  ", (state, _STATE_STYLES.get(state, "")))
    if status.state_at is not None:
        line.append(f" since {_time(status.state_at)}")
    if status.process is not None:
        line.append(f"  {status.process}", "dim")
    if status.origin is Origin.LAKEHOUSE:
        line.append("  as recorded: the task does not run on this machine", "yellow")
    return line


def _source(source: SourceStatus) -> Iterator[RenderableType]:
    facts = [f"relay {source.relay or 'never ran'}", *([_mode(source)] if source.mode is not None else [])]
    yield Text.assemble(("source ", "dim"), (source.source_id, "bold"), "  ", " · ".join(facts))
    lag = _lag(source.lag_seconds, source.lag_bytes)
    rate = f"{_decimal(source.rows_per_second)} rows/s" if source.rows_per_second is not None else None
    if lag is not None or rate is not None:
        yield Text("  " + " · ".join(filter(None, (f"lag {lag}" if lag else None, rate))))
    yield Padding(_positions(source), (0, 0, 0, 2))
    if source.sink_error:
        yield Padding(_labelled("sink", source.sink_error, "bold red"), (0, 0, 0, 2))
    if source.sink_lacks:
        text = "lacks rows that snapshots read from " + ", ".join(source.sink_lacks)
        yield Padding(_labelled("sink", text, "yellow"), (0, 0, 0, 2))
    if source.validator_trouble:
        yield Padding(_labelled("validator", source.validator_trouble, "yellow"), (0, 0, 0, 2))
    if source.stop_waits_for:
        yield Padding(_labelled("stopping, waits for", " · ".join(source.stop_waits_for), "yellow"), (0, 0, 0, 2))


def _mode(source: SourceStatus) -> str:
    if source.mode is Mode.NORMAL:
        return "normal mode"
    count = source.safe_tables or 0
    until = f" until {source.safe_until}" if source.safe_until else ""
    return f"safe mode{until} ({count} table{'' if count == 1 else 's'})"


def _positions(source: SourceStatus) -> Table:
    """The position of each stage; a stage that has not started is omitted."""
    flushed = None
    if source.flushed_at is not None:
        flushed = f"{_time(source.flushed_at)}, {source.flushed_because}"
    sunk = f"{_size(source.sink_lag_bytes)} behind landed" if source.sink_lag_bytes else None
    pending, errors = source.validator_pending, source.validator_errors
    validated = f"rows that differ: {pending:,}, errors: {errors or 0:,}" if pending is not None else None
    newest = f"newest change {_time(source.newest_change)}" if source.newest_change is not None else None
    stages = (
        ("server", source.server_at, None),
        ("relayed", source.relayed_to, None),
        ("landed", source.landed_to, newest),
        ("applied", source.applied_to, None),
        ("flushed", source.flushed_to, flushed),
        ("exit point", source.exit_point, None),
        ("sunk", source.sunk_to, sunk),
        ("validated", source.validated_to, validated),
    )
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_column(style="dim")
    for stage, position, remark in stages:
        if position is not None:
            grid.add_row(stage, Text(position), Text(remark or ""))
    return grid


def _tables_title(status: TaskStatus, shown: Sequence[TableStatus], *, all_tables: bool) -> Text:
    if all_tables:
        return Text(f"{len(shown):,} tables", "bold")
    return Text(f"{len(shown):,} of {len(status.tables):,} tables need attention", "bold")


def _tables(tables: Sequence[TableStatus], *, several: bool, all_tables: bool) -> Table:
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    if several:
        grid.add_column("source", overflow="fold")
    grid.add_column("table", overflow="fold", ratio=3)
    grid.add_column("state", no_wrap=True)
    if all_tables:
        grid.add_column("applied", overflow="fold", ratio=3)
    grid.add_column("details", overflow="fold", ratio=5)
    for table in tables:
        state = table.attention.value if table.attention is not None else table.phase or ""
        cells = [Text(table.source_id)] if several else []
        cells += [Text(table.table), Text(state, _ATTENTION_STYLES.get(table.attention or Attention.SNAPSHOT, ""))]
        cells += [Text(table.applied_to or "")] if all_tables else []
        grid.add_row(*cells, Text("\n".join(_details(table))))
    return grid


def _details(table: TableStatus) -> Iterator[str]:
    if table.snapshot is not None:
        yield _progress(table.snapshot)
    if table.reason is not None:
        waits = table.attention is Attention.WAITING
        yield f"waits before: {table.reason}" if waits else table.reason
    if table.hint is not None:
        yield f"hint: {table.hint}"
    if table.attention is Attention.LATE and table.lag_seconds is not None:
        yield f"{_duration(table.lag_seconds)} behind"
    if table.mode is Mode.SAFE and table.attention is None:
        yield "safe mode"


def _progress(snapshot: SnapshotProgress) -> str:
    text = f"{snapshot.chunks:,} of {snapshot.all_chunks:,} chunks, {snapshot.rows:,} of {snapshot.all_rows:,} rows"
    return text if snapshot.seconds_left is None else f"{text}, {_duration(snapshot.seconds_left)} left"


def _labelled(label: str, text: str, style: str) -> Text:
    return Text.assemble((f"{label}: ", style), " ".join(text.split()))


def _lag(seconds: float | None, size: int | None) -> str | None:
    parts = [_duration(seconds)] if seconds is not None else []
    parts += [_size(size)] if size is not None else []
    return ", ".join(parts) or None


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _size(size: int) -> str:
    value, unit = float(size), _UNITS[0]
    for unit in _UNITS:
        if value < 1024 or unit == _UNITS[-1]:
            break
        value /= 1024
    return f"{size:,} B" if unit == "B" else f"{value:.1f} {unit}"


def _decimal(value: float) -> str:
    return f"{value:,.1f}" if value < 10 else f"{value:,.0f}"


def _time(moment: datetime) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")
