"""Looking at some rows of one table, in silver and at the source: those that the log changed, and single ones again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

from dmdelta.changelog.extraction import keys_of
from dmdelta.changelog.ranges import of_source, of_table, row_changes
from dmdelta.ddl.types.silver_types import VERSION
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.quality.reconcile import HashedRow, Kind
from dmdelta.quality.row_compare import RowLook, SourceRows, left_out_of
from dmdelta.quality.row_keys import RowKey
from dmdelta.silver.apply.quarantine import with_quarantined
from dmdelta.silver.apply.row_checks import no_checks
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.rows.compaction import key_names, keyed_changes
from dmdelta.silver.schema.range_profile import TableEvents
from dmdelta.silver.table.own_rows import own_rows
from dmdelta.silver.table.shard_rows import seen_whole, shard_rows
from dmdelta.source.connection import query, quoted

if TYPE_CHECKING:
    from pymysql.connections import Connection

SLICE_CHANGES = 20_000
"""Changes whose keys the driver holds at once, about."""
KEYS_AT_ONCE = 200
"""Rows that one statement asks the source for."""


@dataclass(frozen=True, slots=True)
class Range:
    """A part of the log, from `begin` on, before `end`."""

    begin: Position
    end: Position


@dataclass(frozen=True, slots=True)
class RowDifferences:
    """What a look has found.

    Attributes:
        keys: of the rows that were looked at.
        kinds: how those that differ do, by the key's text.
        left_out: how many were not compared, because a filter of the spec decides about them.
    """

    keys: Sequence[RowKey]
    kinds: dict[str, Kind]
    left_out: int = 0

    @property
    def agreed(self) -> int:
        """How many rows are the same on both sides."""
        return len(self.keys) - len(self.kinds) - self.left_out


@dataclass(frozen=True, slots=True)
class RowComparer:
    """One source table whose rows are looked at. The source is asked last: what it has more is in its log."""

    spark: SparkSession
    side: SilverContext
    connection: "Connection[Any]"
    schema: TableSchema
    look: RowLook

    @property
    def name(self) -> TableName:
        return self.schema.name

    @property
    def place(self) -> str:
        return self.side.table(self.name).place

    def changed(self, part: Range, events: TableEvents) -> Iterator[RowDifferences]:
        """The rows that a range of the log has changed, slice by slice.

        Args:
            events: what the range holds of the table.

        Raises:
            LakehouseError: bronze or silver cannot be read.
            SourceError, SourceUnavailable: the source cannot.
        """
        changes = sum(rows for op, rows in events.rows.items() if op is not Op.READ)
        slices = -(-changes // SLICE_CHANGES)
        # Rows of an XA transaction have the version of when it was prepared, however long ago.
        written = self._silver() if events.groups else self._written_since(part.begin)
        for number in range(slices):
            with wrapped(self.place, "reading"):
                touched = self._touched(part, events, number, slices)
                found = self.look.changed_rows(touched, self._silver(), written)
            yield self._compared(found.keys, found.silver, written)
            if found.old:
                yield self.again(found.old)

    def again(self, keys: Sequence[RowKey]) -> RowDifferences:
        """Rows that are known by their keys.

        Raises:
            LakehouseError, SourceError, SourceUnavailable: as `changed`.
        """
        with wrapped(self.place, "reading"):
            rows = self.look.silver_rows(self._silver(), keys)
            return self._compared(keys, self.look.silver_hashes(rows), rows)

    def values(self, keys: Sequence[RowKey]) -> dict[str, dict[str, tuple[str | None, str | None]]]:
        """What differs of rows that do, by the key's text and column: the source's text and silver's.

        Raises:
            LakehouseError, SourceError, SourceUnavailable: as `changed`.
        """
        told = SourceRows(self._asked(keys), self._asked(keys, values=True))
        with wrapped(self.place, "reading"):
            return self.look.differing_values(keys, told, self.look.silver_rows(self._silver(), keys))

    def _compared(self, keys: Sequence[RowKey], silver: Sequence[HashedRow], rows: DataFrame) -> RowDifferences:
        told = self._asked(keys)
        return RowDifferences(keys, self.look.differences(told, silver, rows), left_out_of(told))

    def _asked(self, keys: Sequence[RowKey], *, values: bool = False) -> list[tuple[Any, ...]]:
        table, told = quoted(*self.name), list[tuple[Any, ...]]()
        for first in range(0, len(keys), KEYS_AT_ONCE):
            some = keys[first : first + KEYS_AT_ONCE]
            if values:
                told += query(self.connection, self.look.values_query(table, some), [key.text for key in some])
            else:
                told += query(self.connection, self.look.source_query(table, some))
        return told

    def _touched(self, part: Range, events: TableEvents, number: int, slices: int) -> DataFrame:
        """The keys of rows that a range has changed, each once, under their names; one of so many slices."""
        return changed_keys(self.spark, self.side, self.schema, part, events, (number, slices))

    def _written_since(self, begin: Position) -> DataFrame:
        """Silver's rows with a change of the log from there on; statistics skip the files without."""
        epoch, seq = f"{VERSION}.epoch", f"{VERSION}.seq"
        newer = f"{epoch} > {begin.epoch} OR ({epoch} = {begin.epoch} AND {seq} >= {begin.seq})"
        return self._silver().where(newer)

    def _silver(self) -> DataFrame:
        """Silver's rows, and those that are kept apart: together they are the source's."""
        target = self.side.table(self.name)
        with wrapped(self.place, "reading"):
            held = self.spark.table(self.place)
        rows = shard_rows(target, held)
        if self.side.checks is not no_checks:
            rows = with_quarantined(self.spark, target, rows, seen_whole(target, self.schema, held))
        return own_rows(target, self.schema, rows).rows


def changed_keys(
    spark: SparkSession,
    side: SilverContext,
    schema: TableSchema,
    part: Range,
    events: TableEvents,
    slice_of: tuple[int, int] = (0, 1),
) -> DataFrame:
    """The keys of the rows that a range of the log has changed, each once, under their names.

    Args:
        schema: the source table's structure.
        events: what the range holds of the table.
        slice_of: the number of the slice that is meant, and how many there are.
    """
    number, slices = slice_of
    effective = row_changes(part.begin, part.end, events.groups)
    changes = spark.sql(
        f"SELECT * FROM {side.lakehouse.bronze} WHERE {of_source(side.source_id)} AND {of_table(*schema.name)} "
        f"AND op <> 'read' AND {effective}"
    )
    keyed = keyed_changes(changes, schema, moves=bool(events.moves))
    if slices > 1:
        keyed = keyed.where(f"pmod(hash({', '.join(key_names(schema))}), {slices}) = {number}")
    pairs = zip(key_names(schema), keys_of(schema), strict=True)
    return keyed.selectExpr(*(f"{name} AS {quote(column.name)}" for name, column in pairs)).distinct()
