"""Maintains all tables of a task at once, while the task is paused: the implementation of `dmdelta maintain`."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime, timezone
from fnmatch import fnmatchcase

from pyspark.sql import SparkSession

from dmdelta.config import TaskSpec
from dmdelta.engine.control.exclusive import exclusive_access
from dmdelta.engine.maintenance.background import metadata_tables
from dmdelta.engine.maintenance.retention import expire_bronze
from dmdelta.engine.task.source import source_of_task
from dmdelta.engine.task.task import Task, open_task
from dmdelta.errors import ConfigError
from dmdelta.lakehouse.maintenance.old_commits import Content, MaintainedTable, maintained_silver
from dmdelta.lakehouse.maintenance.table import (
    MaintenancePlan,
    maintain_metadata,
    maintain_table,
    plan_maintenance,
    read_table_health,
)
from dmdelta.lakehouse.session import maintenance_session
from dmdelta.silver.apply.quarantine import Quarantine


@dataclass(frozen=True, slots=True)
class Maintained:
    """A table, its state, and the maintenance that was done.

    Attributes:
        new_files, dead_rows, rows: before; as in `dmdelta.lakehouse.maintenance.table.TableHealth`.
        done: `expire`, `retain`, `purge`, `compact`, `vacuum`, `clean`, in this order; for a dry run, what would be
            done, except the first.
        compacted_files, made_files: of the compaction; None without one.
    """

    table: str
    new_files: int
    dead_rows: int
    rows: int
    done: tuple[str, ...]
    compacted_files: int | None = None
    made_files: int | None = None


def maintain(
    spec: TaskSpec, pattern: str, report: Callable[[Maintained], None], *, dry_run: bool = False
) -> list[Maintained]:
    """Compact, purge and vacuum the tables of a task that need it.

    Args:
        pattern: of source tables (`*`, `?`), which selects their silver tables; `*` includes bronze and dm_meta.
        report: called for each table.
        dry_run: only check.

    Raises:
        ConfigError: no table matches.
        StageFailed: a run does not pause. Fenced: another process holds a relay folder.
        LakehouseError: a table cannot be read or written.
    """
    task = open_task(spec, writing=False)
    spark = maintenance_session(task.spark)
    maintained: list[Maintained] = []
    with nullcontext() if dry_run else exclusive_access(spec):
        expired = expire_bronze(task, spark) if pattern == "*" and not dry_run else None
        for shown, table in _tables(task, pattern, spark):
            wear = read_table_health(spark, table)
            if wear is None:
                continue
            plan = plan_maintenance(wear, datetime.now(timezone.utc), thorough=True)
            perform = maintain_metadata if table.content is Content.METADATA else maintain_table
            result = perform(spark, table, MaintenancePlan() if dry_run else plan)
            compacted, made = result.compacted_files, result.new_files
            first = ["expire"] if expired is not None and table.content is Content.BRONZE else []
            done = (*first, *plan.actions)
            maintained.append(
                Maintained(
                    table=shown,
                    new_files=wear.new_files,
                    dead_rows=wear.dead_rows,
                    rows=wear.rows,
                    done=done,
                    compacted_files=compacted,
                    made_files=made,
                )
            )
            report(maintained[-1])
    if not maintained:
        raise ConfigError(f"the task has no table {pattern}", hint="use the names at the source: schema.table")
    return maintained


def _tables(task: Task, pattern: str, spark: SparkSession) -> Iterator[tuple[str, MaintainedTable]]:
    """Display names of the tables, and the tables, each once; they need not exist."""
    seen = set[str]()
    for config in task.spec.sources:
        source = source_of_task(task, config)
        for name in source.known_tables():
            target = source.context.table(name)
            if fnmatchcase(".".join(name), pattern) and target.place not in seen:
                seen.add(target.place)
                shown = ".".join(target.route.name)
                yield shown, maintained_silver(spark, target.place)
                yield f"{shown} (quarantine)", MaintainedTable(Quarantine.of(target).place, Content.QUARANTINE)
    if pattern == "*":
        yield "bronze", MaintainedTable(task.lakehouse.bronze, Content.BRONZE)
        for place in metadata_tables(task.lakehouse, task.spec.name):
            yield place, MaintainedTable(place, Content.METADATA)
