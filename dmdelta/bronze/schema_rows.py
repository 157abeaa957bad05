"""The structures of all tables of a source according to bronze: structure rows and statements."""

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from dmdelta.bronze.landing import newest_beginning
from dmdelta.changelog.context import SourceContext
from dmdelta.ddl.tracking.tracked_structures import Origin, Structures, TrackedTable
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema
from dmdelta.model.spark_sql import literal
from dmdelta.model.statement import LoggedStatement


@dataclass(frozen=True, slots=True)
class ToldRow:
    """A row of bronze: a structure as JSON, or a statement; `schema` is the database that it names."""

    position: Position
    op: Op
    schema: str
    text: str


def told_structures(spark: SparkSession, source: SourceContext, end: Position) -> Structures:
    """The structures before `end`, as far as statements can be applied; without default character sets.

    If the log was restarted in a new epoch, only that epoch and the snapshot before it are used: older epochs may be
    ahead of it.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    query = f"""SELECT epoch, binlog_file, binlog_pos, op, schema_name, ddl FROM {source.bronze}
        WHERE source_id = {literal(source.source_id)} AND op IN ('schema', 'ddl', 'truncate')
        AND epoch > 0 AND (epoch, seq) < ({end.epoch}, {end.seq}) ORDER BY epoch, seq, row"""
    with wrapped(source.bronze, "reading"):
        result = spark.sql(query).collect()
    rows = [
        ToldRow(
            Position(row["epoch"], row["binlog_file"], row["binlog_pos"]), Op(row["op"]), row["schema_name"], row["ddl"]
        )
        for row in result
    ]
    restart = newest_beginning(spark, source) if rows else None
    if restart is not None:
        rows = [
            row for row in rows if row.position.epoch == restart.epoch or _is_snapshot_before(row.position, restart)
        ]
    return structures_of(rows, mariadb=source.flavor == "mariadb")


def structures_of(rows: Iterable[ToldRow], *, mariadb: bool) -> Structures:
    """The structures that result from rows in log order."""
    known = Structures()
    applied: tuple[Position, str] | None = None
    for row in rows:
        if row.op is Op.SCHEMA:
            schema = TableSchema.from_json(row.text)
            origin = Origin.TABLE_MAP if row.position.chunk is None else Origin.SNAPSHOT
            charset = known.charset_of(*schema.name)
            known = Structures({**known.tables, schema.name: TrackedTable(schema, charset, origin)}, known.charsets)
        elif (row.position, row.text) != applied:  # a statement that names several tables has a row for each
            applied = (row.position, row.text)
            known = known.after(LoggedStatement(row.position, row.schema, row.text), mariadb=mariadb)
    return known


def _is_snapshot_before(position: Position, restart: Position) -> bool:
    return position.chunk is not None and position.epoch == restart.epoch - 1
