"""Compares rows of one table between silver and the source: rows that the log changed, and rows by their keys."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

from dmdelta.changelog.extraction import keys_of
from dmdelta.changelog.ranges import of_source, of_table, row_changes
from dmdelta.ddl.types.silver_types import VERSION
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.change import Op
from dmdelta.model.mysql_sql import quoted_name
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.quality.reconcile import HashedRow, Kind
from dmdelta.quality.row_compare import RowLook, SourceRows, left_out_of
from dmdelta.quality.row_keys import RowKey
from dmdelta.silver.apply.gate import may_have_quarantined
from dmdelta.silver.apply.quarantine import with_quarantined
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.rows.compaction import key_names, keyed_changes
from dmdelta.silver.schema.range_profile import TableEvents
from dmdelta.silver.table.shard_rows import own_rows, seen_whole, shard_rows
from dmdelta.source.connection import query

if TYPE_CHECKING:
    from pymysql.connections import Connection

SLICE_CHANGES = 20_000
"""Approximate number of changes whose keys the driver holds in memory."""
KEYS_AT_ONCE = 200
"""Rows that one statement reads from the source."""


@dataclass(frozen=True, slots=True)
class Range:
    """A range of the log: begin ≤ position < end."""

    begin: Position
    end: Position


@dataclass(frozen=True, slots=True)
class RowDifferences:
    """The result of comparing rows.

    Attributes:
        keys: the keys of the compared rows.
        kinds: how the differing rows differ, by the key's text.
        left_out: number of rows that were not compared, because a filter of the spec applies to them.
    """

    keys: Sequence[RowKey]
    kinds: dict[str, Kind]
    left_out: int = 0

    @property
    def agreed(self) -> int:
        """The number of rows that are equal on both sides."""
        return len(self.keys) - len(self.kinds) - self.left_out


@dataclass(frozen=True, slots=True)
class RowComparer:
    """Compares rows of one source table. Reads the source last: whatever silver lacks then is in the source's log."""

    spark: SparkSession
    context: SilverContext
    connection: "Connection[Any]"
    schema: TableSchema
    look: RowLook

    @property
    def name(self) -> TableName:
        return self.schema.name

    @property
    def place(self) -> str:
        return self.context.table(self.name).place

    def changed(self, part: Range, events: TableEvents) -> Iterator[RowDifferences]:
        """Compare the rows that a range of the log changed, slice by slice.

        Args:
            events: the table's events in the range.

        Raises:
            LakehouseError: bronze or silver cannot be read.
            SourceError, SourceUnavailable: the source cannot be read.
        """
        changes = sum(rows for op, rows in events.rows.items() if op is not Op.READ)
        slices = -(-changes // SLICE_CHANGES)
        # Rows of an XA transaction have the version of its XA PREPARE, which may be much older.
        written = self._silver() if events.groups else self._written_since(part.begin)
        for number in range(slices):
            with wrapped(self.place, "reading"):
                touched = self._touched(part, events, number, slices)
                found = self.look.changed_rows(touched, self._silver(), written)
            yield self._compared(found.keys, found.silver, written)
            if found.old:
                yield self.again(found.old)

    def again(self, keys: Sequence[RowKey]) -> RowDifferences:
        """Compare rows by their keys.

        Raises:
            LakehouseError, SourceError, SourceUnavailable: as `changed`.
        """
        with wrapped(self.place, "reading"):
            rows = self.look.silver_rows(self._silver(), keys)
            return self._compared(keys, self.look.silver_hashes(rows), rows)

    def values(self, keys: Sequence[RowKey]) -> dict[str, dict[str, tuple[str | None, str | None]]]:
        """The differing values of differing rows, by the key's text and column: the source's text and silver's.

        Raises:
            LakehouseError, SourceError, SourceUnavailable: as `changed`.
        """
        source = SourceRows(self._source_rows(keys), self._source_rows(keys, values=True))
        with wrapped(self.place, "reading"):
            return self.look.differing_values(keys, source, self.look.silver_rows(self._silver(), keys))

    def _compared(self, keys: Sequence[RowKey], silver: Sequence[HashedRow], rows: DataFrame) -> RowDifferences:
        source = self._source_rows(keys)
        return RowDifferences(keys, self.look.differences(source, silver, rows), left_out_of(source))

    def _source_rows(self, keys: Sequence[RowKey], *, values: bool = False) -> list[tuple[Any, ...]]:
        table, source_rows = quoted_name(*self.name), list[tuple[Any, ...]]()
        for first in range(0, len(keys), KEYS_AT_ONCE):
            some = keys[first : first + KEYS_AT_ONCE]
            if values:
                source_rows += query(self.connection, self.look.values_query(table, some), [key.text for key in some])
            else:
                source_rows += query(self.connection, self.look.source_query(table, some))
        return source_rows

    def _touched(self, part: Range, events: TableEvents, number: int, slices: int) -> DataFrame:
        """The distinct keys of the rows that a range changed, in one of several slices."""
        return changed_keys(self.spark, self.context, self.schema, part, events, (number, slices))

    def _written_since(self, begin: Position) -> DataFrame:
        """Silver's rows that were changed at or after a position; Delta skips other files by their statistics."""
        epoch, seq = f"{VERSION}.epoch", f"{VERSION}.seq"
        newer = f"{epoch} > {begin.epoch} OR ({epoch} = {begin.epoch} AND {seq} >= {begin.seq})"
        return self._silver().where(newer)

    def _silver(self) -> DataFrame:
        """Silver's rows and the quarantined ones: together they correspond to the source's rows."""
        target = self.context.table(self.name)
        with wrapped(self.place, "reading"):
            held = self.spark.table(self.place)
        rows = shard_rows(target, held)
        if may_have_quarantined(self.context, target):
            rows = with_quarantined(self.spark, target, rows, seen_whole(target, self.schema, held))
        return own_rows(target, self.schema, rows).rows


def changed_keys(
    spark: SparkSession,
    context: SilverContext,
    schema: TableSchema,
    part: Range,
    events: TableEvents,
    slice_of: tuple[int, int] = (0, 1),
) -> DataFrame:
    """The distinct keys of the rows that a range of the log changed, with the key's column names.

    Args:
        schema: the source table's schema.
        events: the table's events in the range.
        slice_of: the slice's number, and the number of slices.
    """
    number, slices = slice_of
    effective = row_changes(part.begin, part.end, events.groups)
    changes = spark.sql(
        f"SELECT * FROM {context.lakehouse.bronze} WHERE {of_source(context.source_id)} AND {of_table(*schema.name)} "
        f"AND op <> 'read' AND {effective}"
    )
    keyed = keyed_changes(changes, schema, moves=bool(events.moves))
    if slices > 1:
        keyed = keyed.where(f"pmod(hash({', '.join(key_names(schema))}), {slices}) = {number}")
    pairs = zip(key_names(schema), keys_of(schema), strict=True)
    return keyed.selectExpr(*(f"{name} AS {quote(column.name)}" for name, column in pairs)).distinct()
