"""Reads the contents of a report: table histories, a few aggregates of bronze, and dm_meta."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

from dmdelta import __version__
from dmdelta.bronze.progress import landing_app
from dmdelta.config import TaskSpec
from dmdelta.engine.inspect.stored_status import stored_status
from dmdelta.engine.task.task import Stage, Task, ignored, open_task
from dmdelta.engine.telemetry.task_status import TaskStatus
from dmdelta.lakehouse.history import TimedCommit, timed_commits
from dmdelta.model.position import Position
from dmdelta.report.batches import LandedRows, batches_of, paces_of, safe_ranges_of
from dmdelta.report.bronze_stats import LandedSince, TableRows
from dmdelta.report.checks import read_checks
from dmdelta.report.facts import Report, TableActivity, Window
from dmdelta.report.time_buckets import stretches_of
from dmdelta.silver.table.target import silver_app

MOST_COMMITS = 10_000
"""Per table: a day of commits every nine seconds."""
_HISTORIES_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class SilverTable:
    """A source table's rows and their silver commits, newest first."""

    landed: TableRows
    commits: tuple[TimedCommit, ...]


def gather(spec: TaskSpec, last: timedelta, stage: Stage = ignored) -> Report:
    """The activity of the task in the last `last` before its newest commit.

    Reads the lakehouse, the relay folders and the sink's target, but not the sources.

    Args:
        stage: called as the parts of the report are read.

    Raises:
        LakehouseError: a table cannot be read.
    """
    with ThreadPoolExecutor(1) as pool:  # while Spark starts
        read = pool.submit(stored_status, spec)
        task = open_task(spec, writing=False, beside_run=True)
        status = read.result()
    stage("reading bronze")
    made_at = datetime.now(timezone.utc)
    report = Report(status, made_at, __version__, always_safe=spec.syncer.safe_mode)
    history, whole = timed_commits(task.spark, task.lakehouse.bronze, last, MOST_COMMITS)
    apps = {landing_app(spec.name, source.source_id) for source in spec.sources}
    landings = [commit for commit in history if commit.tag.app in apps]
    if not landings:
        return report
    since = landings[0].at - last if whole else landings[-1].at
    landed = LandedSince(task.spark, task.lakehouse.bronze, tuple(s.source_id for s in spec.sources), since)
    rows = _without_archives(spec, landed.rows_of_batches())
    tables, table_count = landed.tables()
    stage("reading the histories of silver")
    silver = _silver(task, tables, last)
    applied = [commit for table in silver for commit in table.commits if commit.at >= since]
    moments = [*(commit.at for commit in (*landings, *applied)), *(each.landed_at for each in rows)]
    window = Window(max(min(moments), since), max(moments), last, cut=not whole)
    stretches = stretches_of(window.since, window.until)
    stage("reading schema changes and checks")
    changes, change_count = landed.schema_changes()
    return replace(
        report,
        window=window,
        paces=paces_of(batches_of(landings, rows, applied), stretches),
        rows=landed.rows_by_time(stretches),
        tables=tuple(_activity(spec, status, table) for table in silver),
        table_count=table_count,
        schema_changes=changes,
        schema_change_count=change_count,
        safe_ranges=safe_ranges_of([*landings, *applied]),
        checks=read_checks(task.spark, task.lakehouse, spec.name, stretches),
    )


def activity_of(table: SilverTable, flushed: Position | None, *, archive: bool) -> TableActivity:
    """A table of the report.

    Args:
        flushed: its checkpoint position: rows that the spec's filters exclude make no commit.
        archive: its changes may be years old, so their age is meaningless.
    """
    landed = table.landed
    holding = [commit.at for commit in table.commits if landed.last is not None and commit.tag.end.key > landed.last]
    lag = None
    if landed.newest_change is not None and holding and not archive:
        lag = max(0.0, (min(holding) - landed.newest_change).total_seconds())
    behind = landed.last is not None and not holding and (flushed is None or flushed.key <= landed.last)
    return TableActivity(
        source_id=landed.source_id,
        table=f"{landed.schema}.{landed.table}",
        rows=landed.rows,
        newest_change=landed.newest_change,
        silver_at=table.commits[0].at if table.commits else None,
        silver_lag=lag,
        behind=behind,
    )


def _activity(spec: TaskSpec, status: TaskStatus, table: SilverTable) -> TableActivity:
    source_id, name = table.landed.source_id, f"{table.landed.schema}.{table.landed.table}"
    flushed = [
        Position.parse(each.applied_to)
        for each in status.tables
        if (each.source_id, each.table) == (source_id, name) and each.applied_to is not None
    ]
    return activity_of(table, max(flushed, default=None), archive=source_id in _archives(spec))


def _archives(spec: TaskSpec) -> set[str]:
    return {source.source_id for source in spec.sources if source.host is None}


def _without_archives(spec: TaskSpec, rows: Sequence[LandedRows]) -> list[LandedRows]:
    archives = _archives(spec)
    return [replace(each, newest_change=None) if each.source_id in archives else each for each in rows]


def _silver(task: Task, tables: Sequence[TableRows], span: timedelta) -> list[SilverTable]:
    def commits(table: TableRows) -> SilverTable:
        name = (table.schema, table.table)
        place = task.lakehouse.silver(*task.rules(table.source_id).route(*name).name)
        history, _ = timed_commits(task.spark, place, span, MOST_COMMITS)
        app = silver_app(task.spec.name, table.source_id, *name)
        return SilverTable(table, tuple(commit for commit in history if commit.tag.app == app))

    with ThreadPoolExecutor(_HISTORIES_AT_ONCE) as pool:
        return list(pool.map(commits, tables))
