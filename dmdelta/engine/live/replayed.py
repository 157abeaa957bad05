"""The rows of a table as of a position that silver's history does not reach back to: replayed to a scratch table."""

from dataclasses import replace

from pyspark.sql import DataFrame

from dmdelta.engine.history.lineage import TablePast
from dmdelta.engine.history.scratch import TableScratch
from dmdelta.engine.task.task import Task
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.silver.apply.request import ApplyRequest
from dmdelta.silver.apply.row_checks import no_checks
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.history.repair import rows_at
from dmdelta.silver.table.shard_rows import as_held, shape_of
from dmdelta.silver.table.state import silver_state


def replayed_rows(task: Task, context: SilverContext, name: TableName, at: Position) -> DataFrame:
    """The rows of a table at a position, from its whole history in bronze. Costs as much as a replay of it.

    The scratch table is in the metadata schema. A later call with another position replaces its rows; the frame keeps
    reading its own version.

    Raises:
        QualityError: bronze does not contain the history, or a snapshot read the table at the position.
        DmdeltaError: as `replay_ranges`.
    """
    spark, target, table_past = task.spark, context.table(name), TablePast(task, context, name)
    past = table_past.until(at)
    table_past.assert_settled(past, at)

    def guarded(request: ApplyRequest) -> ApplyRequest:
        checks = context.checks
        own = replace(request.context, checks=lambda _, schema: checks(target, schema), keeps_quarantine=False)
        return replace(request, context=own)

    guard = guarded if context.checks is not no_checks else None
    scratch = TableScratch(task, context, name, lambda _: None, guard)
    request = scratch.request(past, "live", str(at))
    scratch.build(request, past)
    held = shape_of(spark, target, table_past.schema_before(at))
    version = silver_state(spark, request.target).delta_version
    return held.where("false") if version is None else as_held(rows_at(spark, request.target, version), held)
