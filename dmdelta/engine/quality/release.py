"""`dmdelta quality release`: releases quarantined rows to silver, or deletes them.

With `quality.sink: passing`, released rows also reach the sink's target.
"""

from dataclasses import dataclass
from functools import partial

from dmdelta.config import TaskSpec
from dmdelta.engine.apply.row_checks import TableChecks
from dmdelta.engine.control.exclusive import exclusive_access
from dmdelta.engine.history.lineage import TablePast
from dmdelta.engine.quality.release_to_sink import open_release_to_sink
from dmdelta.engine.task.mapping import sinks_passing_rows
from dmdelta.engine.task.source import TaskSource, open_task_source
from dmdelta.engine.task.task import open_suites
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.schema import TableName
from dmdelta.model.spark_sql import literal, quote
from dmdelta.silver.apply.gate import failing_any
from dmdelta.silver.apply.quarantine import Quarantine, silver_rows_of
from dmdelta.silver.history.repair import damaged_rows, repair_rows, repair_tag, rows_at, table_version


@dataclass(frozen=True, slots=True)
class ReleaseRequest:
    """Which quarantined rows to release.

    Attributes:
        table: `schema.table` at the source; `*` and `?` match several.
        force: release rows that still fail, too.
        discard: delete the rows instead of releasing them.
    """

    table: str
    source: str | None = None
    force: bool = False
    discard: bool = False


@dataclass(frozen=True, slots=True)
class Released:
    """The numbers of a table's quarantined rows, by outcome.

    Attributes:
        released: rows that silver has now.
        discarded: rows that were deleted.
        failing: rows that still fail, and stay in quarantine.
        outdated: rows with an earlier schema of the table, which stay in quarantine, too.
    """

    table: str
    released: int = 0
    discarded: int = 0
    failing: int = 0
    outdated: int = 0


def release(spec: TaskSpec, request: ReleaseRequest) -> list[Released]:
    """Release rows, table by table, while the task is paused. Can be repeated.

    Raises:
        ConfigError: there is no such table.
        DmdeltaError: the task cannot be paused, or silver or the sink's target cannot be written.
    """
    source = open_task_source(spec, request.source)
    results: list[Released] = []
    for name in source.tables_like(request.table):
        quarantine = Quarantine.of(source.context.table(name))
        if not quarantine.has_rows(source.task.spark):
            continue
        with exclusive_access(spec):
            results.append(
                _discard(source, name, quarantine) if request.discard else _release(source, name, quarantine, request)
            )

    return results


def _discard(source: TaskSource, name: TableName, quarantine: Quarantine) -> Released:
    with wrapped(quarantine.place, "reading"):
        count = quarantine.rows(source.task.spark).count()
    quarantine.forget(source.task.spark)
    return Released(".".join(name), discarded=count)


def _release(source: TaskSource, name: TableName, quarantine: Quarantine, request: ReleaseRequest) -> Released:
    task, target = source.task, quarantine.target
    spark, shown = task.spark, ".".join(name)
    quarantined = quarantine.rows(spark)
    at = table_version(spark, target)
    structure = TablePast(task, source.context, name).schema_before(at.position)
    schema = target.silver_schema(structure)
    sink = open_release_to_sink(source, name, at.position) if sinks_passing_rows(task.spec) else None
    current = silver_rows_of(quarantined.where(f"structure = {literal(schema.to_json())}"), schema)
    checks = () if request.force else TableChecks(spark, open_suites(task.spec))(target, schema)
    passing = current.where(~failing_any(checks)) if checks else current
    with wrapped(quarantine.place, "reading"):
        total, fitting, released = quarantined.count(), current.count(), passing.count()
    live = rows_at(spark, target, at.version)
    rows = passing.select(*map(quote, live.columns))
    wrong = damaged_rows(live, rows, rows.where("false"), schema)
    repair_rows(spark, target.place, wrong, schema, partial(repair_tag, spark, target, task.run))
    if sink is not None:
        sink.write(quarantined, passing, structure)
    quarantine.remove(spark, passing)
    return Released(shown, released, failing=fitting - released, outdated=total - fitting)
