"""What bronze tells about the structures of all tables of a source: rows of structure and statements."""

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from dmdelta.bronze.landing import LandingSource, newest_beginning
from dmdelta.ddl.tracking import Origin, Structures, TrackedTable
from dmdelta.lakehouse.foreign import wrapped
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


def told_structures(spark: SparkSession, source: LandingSource, end: Position) -> Structures:
    """What bronze tells before `end`, as far as statements can be followed; default character sets are not in it.

    Of a log that was begun anew only what is in its own epoch and in the snapshot before it: older epochs may be ahead
    of it.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    query = f"""SELECT epoch, binlog_file, binlog_pos, op, schema_name, ddl FROM {source.bronze}
        WHERE source_id = {literal(source.source_id)} AND op IN ('schema', 'ddl', 'truncate')
        AND epoch > 0 AND (epoch, seq) < ({end.epoch}, {end.seq}) ORDER BY epoch, seq, row"""
    with wrapped(source.bronze, "reading"):
        found = spark.sql(query).collect()
    rows = [
        ToldRow(
            Position(row["epoch"], row["binlog_file"], row["binlog_pos"]), Op(row["op"]), row["schema_name"], row["ddl"]
        )
        for row in found
    ]
    begun = newest_beginning(spark, source) if rows else None
    if begun is not None:
        rows = [row for row in rows if row.position.epoch == begun.epoch or _is_snapshot_before(row.position, begun)]
    return structures_of(rows, mariadb=source.flavor == "mariadb")


def structures_of(rows: Iterable[ToldRow], *, mariadb: bool) -> Structures:
    """What rows, in the order of the log, lead to."""
    known = Structures()
    followed: tuple[Position, str] | None = None
    for row in rows:
        if row.op is Op.SCHEMA:
            schema = TableSchema.from_json(row.text)
            origin = Origin.TABLE_MAP if row.position.chunk is None else Origin.SNAPSHOT
            charset = known.charset_of(*schema.name)
            known = Structures({**known.tables, schema.name: TrackedTable(schema, charset, origin)}, known.charsets)
        elif (row.position, row.text) != followed:  # a statement that names several tables has a row for each
            followed = (row.position, row.text)
            known = known.after(LoggedStatement(row.position, row.schema, row.text), mariadb=mariadb)
    return known


def _is_snapshot_before(position: Position, begun: Position) -> bool:
    return position.chunk is not None and position.epoch == begun.epoch - 1
