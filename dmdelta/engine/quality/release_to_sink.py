"""Brings released rows to the sink's target, if the sink keeps quarantined rows out of it (`quality.sink: passing`)."""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.ddl.types.silver_types import VERSION
from dmdelta.engine.task.mapping import target_server
from dmdelta.engine.task.source import TaskSource
from dmdelta.errors import QualityError
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.silver.apply.quarantine import ROW_KEY, Quarantine
from dmdelta.silver.schema.range_profile import table_events
from dmdelta.sink.execute.released import ReleasedRows, write_released
from dmdelta.sink.plan.checkpoint import Checkpoint
from dmdelta.sink.target.connection import TargetServer, session
from dmdelta.sink.target.metadata import Metadata


@dataclass(frozen=True, slots=True)
class ReleaseToSink:
    """The target, which has the same changes of a table as silver."""

    source: TaskSource
    server: TargetServer
    table: TableName

    def write(self, quarantined: DataFrame, released: DataFrame, structure: TableSchema) -> None:
        """Write the images of released rows. Idempotent.

        Args:
            quarantined: rows of the quarantine.
            released: which of them, with ROW_KEY and the version.
            structure: the table's at the source.

        Raises:
            TargetUnavailable, SinkError: the target does not answer, or refuses a row.
            LakehouseError: the quarantine cannot be read.
        """
        target = self.source.context.table(self.table)
        keys = released.selectExpr(ROW_KEY, f"{VERSION} AS _dm_released")
        same = F.expr(f"row_key = {ROW_KEY} AND {VERSION} = _dm_released")
        rows = quarantined.join(keys, same, "left_semi").selectExpr(
            "'insert' AS op", f"{VERSION}.seq AS seq", f"{VERSION}.row AS row", "image AS after"
        )
        write_released(
            self.server, ReleasedRows(self.table, structure, target.route, rows, Quarantine.of(target).place)
        )


def open_release_to_sink(source: TaskSource, table: TableName, silver_at: Position) -> ReleaseToSink:
    """The target, if it is where silver is: otherwise a released row might replace a newer one, or be executed again.

    Args:
        silver_at: silver's position in the log of the table.

    Raises:
        QualityError: the sink lacks changes of the table that silver has, or the other way round.
        TargetUnavailable, SinkError: the target does not answer.
        LakehouseError: bronze cannot be read.
    """
    sink, task = source.task.spec.sink, source.task
    assert sink is not None
    server = target_server(sink)
    metadata = Metadata(sink.metadata, task.spec.name, source.context.source_id, task.run)
    with session(server) as connection:
        checkpoint = metadata.points.read(connection)
    if checkpoint is None or not checkpoint.ended or _differs(source, table, silver_at, checkpoint):
        raise QualityError(
            f"the sink does not have the same changes of {'.'.join(table)} as silver: its rows cannot be released",
            hint="run the task until silver and the sink have caught up (`dmdelta run SPEC --until-caught-up`), then "
            "release again",
        )
    return ReleaseToSink(source, server, table)


def _differs(source: TaskSource, table: TableName, silver_at: Position, checkpoint: Checkpoint) -> bool:
    sink_at = max(checkpoint.position, checkpoint.tables.get(table, checkpoint.position))
    begin, end = sorted((silver_at, sink_at))
    events = table_events(source.task.spark, source.context, table, begin, end)
    return bool(events.row_count or events.ddl)
