"""`dmdelta quality release`: rows that were kept apart go on to silver, or are forgotten."""

from dataclasses import dataclass
from functools import partial

from dmdelta.config import TaskSpec
from dmdelta.engine.apply.row_checks import TableChecks
from dmdelta.engine.control.exclusive import exclusive_access
from dmdelta.engine.history.lineage import TablePast
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
    """What becomes of rows that are kept apart.

    Attributes:
        table: `schema.table` at the source, with `*` and `?` for several.
        force: send on what still fails, too.
        discard: send nothing on.
    """

    table: str
    source: str | None = None
    force: bool = False
    discard: bool = False


@dataclass(frozen=True, slots=True)
class Released:
    """What became of a table's rows.

    Attributes:
        released: rows that silver has now.
        discarded: rows that nobody has any more.
        failing: rows that still fail, and stay.
        outdated: rows from before the table's structure changed, which stay, too.
    """

    table: str
    released: int = 0
    discarded: int = 0
    failing: int = 0
    outdated: int = 0


def release(spec: TaskSpec, request: ReleaseRequest) -> list[Released]:
    """Send rows on, table by table, while the task stands still. Can be repeated.

    Raises:
        ConfigError: there is no such table.
        DmdeltaError: the task does not pause, or silver cannot be written.
    """
    source = open_task_source(spec, request.source)
    found: list[Released] = []
    for name in source.tables_like(request.table):
        quarantine = Quarantine.of(source.side.table(name))
        if not quarantine.has_rows(source.task.spark):
            continue
        with exclusive_access(spec):
            found.append(
                _discard(source, name, quarantine) if request.discard else _release(source, name, quarantine, request)
            )

    return found


def _discard(source: TaskSource, name: TableName, quarantine: Quarantine) -> Released:
    with wrapped(quarantine.place, "reading"):
        count = quarantine.rows(source.task.spark).count()
    quarantine.forget(source.task.spark)
    return Released(".".join(name), discarded=count)


def _release(source: TaskSource, name: TableName, quarantine: Quarantine, request: ReleaseRequest) -> Released:
    task, target = source.task, quarantine.target
    spark, shown = task.spark, ".".join(name)
    apart = quarantine.rows(spark)
    at = table_version(spark, target)
    schema = target.silver_schema(TablePast(task, source.side, name).schema_before(at.position))
    of_now = silver_rows_of(apart.where(f"structure = {literal(schema.to_json())}"), schema)
    checks = () if request.force else TableChecks(spark, open_suites(task.spec))(target, schema)
    passing = of_now.where(~failing_any(checks)) if checks else of_now
    with wrapped(quarantine.place, "reading"):
        all_of_them, fitting, released = apart.count(), of_now.count(), passing.count()
    live = rows_at(spark, target, at.version)
    rows = passing.select(*map(quote, live.columns))
    wrong = damaged_rows(live, rows, rows.where("false"), schema)
    repair_rows(spark, target.place, wrong, schema.primary_key, partial(repair_tag, spark, target, task.run))
    quarantine.remove(spark, passing)
    return Released(shown, released, failing=fitting - released, outdated=all_of_them - fitting)
