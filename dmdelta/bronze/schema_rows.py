"""The structures of all tables of a source according to bronze: structure rows and statements."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - Spark's convention

from dmdelta.bronze.progress import newest_beginning
from dmdelta.changelog.context import SourceContext
from dmdelta.ddl.tracking.tracked_structures import Origin, Structures, TrackedTable
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema
from dmdelta.model.spark_sql import literal
from dmdelta.model.statement import LoggedStatement


@dataclass(frozen=True, slots=True)
class SchemaRow:
    """A row of bronze: a structure as JSON, or a statement; `schema` is the database that it names."""

    position: Position
    op: Op
    schema: str
    text: str


def structures_before(spark: SparkSession, source: SourceContext, end: Position) -> Structures:
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
        SchemaRow(
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


def structures_of(rows: Iterable[SchemaRow], *, mariadb: bool) -> Structures:
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


_ROW = -3
"""Structure rows have negative numbers at their event; the log's own use -1, watermarks -2."""


_COLUMNS = {
    "source_id": T.StringType(),
    "epoch": T.IntegerType(),
    "seq": T.LongType(),
    "row": T.IntegerType(),
    "binlog_file": T.StringType(),
    "binlog_pos": T.LongType(),
    "committed_at": T.TimestampType(),
    "schema_name": T.StringType(),
    "table_name": T.StringType(),
    "op": T.StringType(),
    "ddl": T.StringType(),
    "schema_version": T.LongType(),
    "landed_at": T.TimestampType(),
    "landed_on": T.DateType(),
}


def structure_rows(
    spark: SparkSession,
    bronze: str,
    source_id: str,
    structures: Iterable[tuple[TableSchema, Position]],
    now: datetime,
) -> DataFrame:
    """Rows of bronze with op = schema, one for each structure, at its position. `now` is in UTC.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    rows = [
        (
            source_id,
            at.epoch,
            at.seq,
            _ROW,
            at.binlog_file,
            at.offset,
            now,
            *schema.name,
            Op.SCHEMA.value,
            schema.to_json(),
            schema.version,
            now,
            now.date(),
        )
        for schema, at in structures
    ]
    kinds = T.StructType([T.StructField(name, kind) for name, kind in _COLUMNS.items()])
    with wrapped(bronze, "reading"):
        structure_frame = spark.createDataFrame(rows, kinds).coalesce(1)
        return spark.read.table(bronze).where("false").unionByName(structure_frame, allowMissingColumns=True)
