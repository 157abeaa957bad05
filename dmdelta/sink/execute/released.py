"""Writes rows that were released from quarantine to the target while no sink of the task runs."""

from dataclasses import dataclass

import pymysql
from pyspark.sql import DataFrame

from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.rules import Route
from dmdelta.sink.execute.merger import Style, merged
from dmdelta.sink.execute.worker import execute_written
from dmdelta.sink.read.change_reader import changes_of
from dmdelta.sink.read.columns import rendered
from dmdelta.sink.read.image_query import Rendering, rendering_columns
from dmdelta.sink.target.connection import TargetServer, session, translated
from dmdelta.sink.target.tables import Tables

INSERTED = frozenset({"insert"})


@dataclass(frozen=True, slots=True)
class ReleasedRows:
    """
    Attributes:
        table: the source table.
        schema: its structure at the source.
        rows: columns op ('insert'), seq, row and after, the image, as in bronze.
        place: where the rows are read from, for errors.
    """

    table: TableName
    schema: TableSchema
    route: Route
    rows: DataFrame
    place: str


def write_released(server: TargetServer, released: ReleasedRows) -> int:
    """Insert the rows, or replace those with the same keys, in one transaction; returns their number. Idempotent.

    Raises:
        TargetUnavailable: the target does not answer. SinkError: it refuses a row, or its table is incompatible.
        LakehouseError: the rows cannot be read.
    """
    tables = Tables(server)
    try:
        plan = tables.plan(released.table, released.schema.version, released.schema, released.route)
    finally:
        tables.close()
    wanted = Rendering(plan, "", INSERTED)
    with wrapped(released.place, "reading"):
        read = released.rows.selectExpr(*rendering_columns(wanted)).toArrow()
    if not read.num_rows:
        return 0
    changes = [(plan.shape, change) for _, change in changes_of(rendered(read, wanted))]
    with session(server) as connection:
        try:
            connection.autocommit(False)
            for statement in merged(changes, Style(safe=True)):
                execute_written(connection, statement)
            connection.commit()
        except (pymysql.err.MySQLError, OSError) as error:
            what = f"{server}, released rows of {plan.shape.table},"
            raise translated(error, what, quotes_rows=True) from error
    return len(changes)
