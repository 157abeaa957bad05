"""The row changes of a range, read from bronze alone: to check silver independently of its own contents."""

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema
from dmdelta.silver.apply.request import ApplyRequest
from dmdelta.silver.apply.row_filters import plan_counting
from dmdelta.silver.rows.batch import Batch
from dmdelta.silver.rows.compaction import inserted_rows, key_names, keyed_changes
from dmdelta.silver.rows.strategy import Mode
from dmdelta.silver.schema.lookup import structure_at, table_log
from dmdelta.silver.schema.range_profile import TableEvents, table_events
from dmdelta.silver.schema.schema_ranges import SchemaRange, known_inside, known_schema, plan_schema_ranges

_ORDER = "named_struct('epoch', epoch, 'seq', seq, 'row', row, 'part', part)"


@dataclass(frozen=True, slots=True)
class RangePiece:
    """A part of a range with one table structure."""

    batch: Batch
    begin: Position
    end: Position

    @property
    def images(self) -> DataFrame:
        """Every row image that was written, with the silver table's columns."""
        return inserted_rows(self.batch.changes.where("op <> 'delete'"), self.batch.schema)


@dataclass(frozen=True, slots=True)
class RangeProfile:
    """The events of a request's range, and its schema ranges. More than one: statements change or empty the table."""

    request: ApplyRequest
    events: TableEvents
    ranges: tuple[SchemaRange, ...]

    def pieces(self, spark: SparkSession) -> Iterator[RangePiece]:
        """The parts of the range that have row changes, in order.

        Raises:
            SchemaError: a structure is unknown.
            LakehouseError: bronze cannot be read.
        """
        for piece in self.ranges:
            batch = self.batch_of(spark, piece)
            if batch is not None:
                yield RangePiece(batch, piece.begin, piece.end)

    def batch_of(self, spark: SparkSession, piece: SchemaRange) -> Batch | None:
        """The row changes of a schema range that the rules select, for reading; None if there are none.

        Raises:
            SchemaError: its structure is unknown.
            LakehouseError: bronze cannot be read.
        """
        inside = known_inside(piece, self.ranges, self.events)
        if inside is None:
            inside = table_events(spark, self.request.context, self.request.name, piece.begin, piece.end)
        return _batch_of(spark, self.request, piece, inside)


def range_profile(spark: SparkSession, request: ApplyRequest) -> RangeProfile:
    """The profile of a request's range, from two queries.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    name, begin, end = request.name, request.begin, request.end
    events = table_events(spark, request.context, name, begin, end)
    log = table_log(spark, request.context, name, events.structure, request.ddl_applied_to)
    ranges = plan_schema_ranges(log, structure_at(spark, request.context, name, begin), begin, end)
    return RangeProfile(request, events, ranges)


def _batch_of(spark: SparkSession, request: ApplyRequest, piece: SchemaRange, events: TableEvents) -> Batch | None:
    if not events.row_count:
        return None
    schema = request.target.silver_schema(known_schema(piece, request.name))
    events, counted = plan_counting(request, schema, events)
    return Batch(
        spark=spark,
        bronze=request.context.lakehouse.bronze,
        source_id=request.context.source_id,
        target=request.target.place,
        schema=schema,
        begin=piece.begin,
        end=piece.end,
        events=events,
        mode=Mode.SAFE,
        empty=False,
        counted=counted,
    )


def rows_added(piece: RangePiece) -> int:
    """The number of rows that a part of a range adds to a table; negative if it deletes more.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    batch = piece.batch
    changes = keyed_changes(batch.changes, batch.schema, moves=bool(batch.events.moves))
    ends = changes.groupBy(*key_names(batch.schema)).agg(
        F.expr(f"min_by(op, {_ORDER}) AS first"), F.expr(f"max_by(op, {_ORDER}) AS last")
    )
    with wrapped(batch.bronze, "reading"):
        (row,) = ends.selectExpr("count_if(last <> 'delete') - count_if(first <> 'insert') AS added").collect()
    return int(row["added"] or 0)


def schema_at_end(spark: SparkSession, request: ApplyRequest) -> TableSchema | None:
    """The table's structure in silver at the range's end; None if it did not exist."""
    schema = structure_at(spark, request.context, request.name, request.end)
    return request.target.silver_schema(schema) if schema is not None else None
