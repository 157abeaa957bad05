"""The table `dm_meta.<task>_schema_history`: the structures of tables by log position, and their origin.

For servers that send no column names. Landing adds a batch's rows right before the batch itself: rows at or after the
end of bronze belong to a batch that never landed; they are ignored, and removed at the next start. If the table is
missing, the structures in bronze replace it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812 - Spark's convention

from dmdelta.ddl.tracking.structure_plan import StructureChange
from dmdelta.ddl.tracking.tracked_structures import Origin, Structures, TrackedTable
from dmdelta.lakehouse.access.interface import one_of
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.metadata_table import MetadataRow, MetadataTable
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema

SCHEMA_HISTORY = MetadataTable(
    "schema_history",
    {
        "source_id": T.StringType(),
        "epoch": T.IntegerType(),
        "seq": T.LongType(),
        "binlog_file": T.StringType(),
        "binlog_pos": T.LongType(),
        "schema_name": T.StringType(),
        "table_name": T.StringType(),
        "structure": T.StringType(),
        "charset": T.StringType(),
        "origin": T.StringType(),
        "flushed_at": T.TimestampType(),
    },
    keys=("source_id", "epoch", "seq", "schema_name", "table_name"),
    order="flushed_at",
)
DELETE = "delete"
"""An operator requests that the structure is read from information_schema again."""
RESTARTED = "anew"
"""The log restarts: no earlier row is valid."""
_DECIDED = (Origin.UPDATE.value, DELETE, RESTARTED)


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """From `position` on, this is the state of a table (`table` None: a database, `schema` None: everything).

    Attributes:
        structure: None: unknown, or the table was dropped.
        charset: the default character set of the table or the database.
        origin: an `Origin`'s value, `DELETE` or `RESTARTED`.
        at: when it was written, in UTC.
    """

    position: Position
    schema: str | None
    table: str | None
    structure: TableSchema | None
    charset: str | None
    origin: str
    at: datetime

    @property
    def is_decision(self) -> bool:
        """An operator or a restart wrote it, not a batch."""
        return self.origin in _DECIDED

    def counts(self, end: Position) -> bool:
        """Whether it is valid while bronze ends at `end`."""
        return self.position < end or (self.is_decision and self.position == end)


def row_of(change: StructureChange, at: datetime) -> HistoryRow:
    """The row that records a change."""
    tracked = change.tracked
    origin = tracked.origin if tracked else Origin.DDL
    schema = tracked.schema if tracked else None
    return HistoryRow(
        position=change.position,
        schema=change.schema,
        table=change.table,
        structure=schema,
        charset=change.charset,
        origin=origin.value,
        at=at,
    )


def structures_at(rows: Iterable[HistoryRow], end: Position, base: Structures) -> Structures:
    """The structures according to the history while bronze ends at `end`, applied over `base`; `rows` in order."""
    known = base
    for row in rows:
        if row.counts(end):
            known = _with(known, row)
    return known


def _with(known: Structures, row: HistoryRow) -> Structures:
    if row.schema is None:
        return Structures()
    tables, charsets = dict(known.tables), dict(known.charsets)
    if row.table is None:
        charsets.pop(row.schema, None)
        if row.charset is not None:
            charsets[row.schema] = row.charset
    elif row.structure is None:
        tables.pop((row.schema, row.table), None)
    else:
        tables[row.schema, row.table] = TrackedTable(row.structure, row.charset, Origin(row.origin))
    return Structures(tables, charsets)


class SchemaHistory:
    """The history of one source's structures. One thread at a time."""

    def __init__(self, spark: SparkSession, lakehouse: Lakehouse, task: str, source_id: str) -> None:
        self._table = SCHEMA_HISTORY.of(spark, lakehouse, task)
        self._source_id = source_id

    def rows(self) -> list[HistoryRow]:
        """All rows in log order, at the same position in the order of writing; empty without a table.

        Raises:
            LakehouseError: the table cannot be read.
        """
        rows = self._table.rows(one_of("source_id", self._source_id))
        rows.sort(key=lambda row: (row["epoch"], row["seq"], row["flushed_at"]))
        return [_history_row(row) for row in rows]

    def append(self, rows: Sequence[HistoryRow]) -> None:
        """Add rows in one commit; for one table at one position the last row wins.

        Raises:
            ForeignTable: the existing table belongs to another task.
            LakehouseError: the commit failed.
        """
        if not rows:
            return
        self._table.create()
        last = {(row.position, row.schema, row.table): self._fields(row) for row in rows}
        self._table.append(list(last.values()))

    def remove_ahead(self, rows: Iterable[HistoryRow], end: Position) -> None:
        """Remove those of `rows` after the end of bronze (`end`), except decisions.

        Raises:
            LakehouseError: the commit failed.
        """
        ahead = [row for row in rows if not row.counts(end) and row.origin not in (Origin.UPDATE.value, DELETE)]
        if not ahead:
            return
        self._table.delete(partial(self._are_ahead, end))

    def start_epoch(self, begin: Position) -> None:
        """Record that no earlier row is valid once bronze continues at `begin`.

        Raises:
            LakehouseError: the table cannot be written.
        """
        if self.rows():
            self.append(
                [
                    HistoryRow(
                        position=begin,
                        schema=None,
                        table=None,
                        structure=None,
                        charset=None,
                        origin=RESTARTED,
                        at=datetime.now(timezone.utc),
                    )
                ]
            )

    def _are_ahead(self, end: Position, literal: Callable[[str], str]) -> str:
        """The condition for rows after the end of bronze, except decisions."""
        decided = ", ".join(literal(origin) for origin in (Origin.UPDATE.value, DELETE))
        return (
            f"source_id = {literal(self._source_id)} AND origin NOT IN ({decided}) AND (epoch > {end.epoch} "
            f"OR (epoch = {end.epoch} AND (seq > {end.seq} OR (seq = {end.seq} AND origin <> {literal(RESTARTED)}))))"
        )

    def _fields(self, row: HistoryRow) -> dict[str, Any]:
        return {
            "source_id": self._source_id,
            "epoch": row.position.epoch,
            "seq": row.position.seq,
            "binlog_file": row.position.binlog_file,
            "binlog_pos": row.position.offset,
            "schema_name": row.schema,
            "table_name": row.table,
            "structure": row.structure.to_json() if row.structure else None,
            "charset": row.charset,
            "origin": row.origin,
            "flushed_at": row.at,
        }


def _history_row(row: MetadataRow) -> HistoryRow:
    structure = TableSchema.from_json(row["structure"]) if row["structure"] is not None else None
    return HistoryRow(
        position=Position(row["epoch"], row["binlog_file"], row["binlog_pos"]),
        schema=row["schema_name"],
        table=row["table_name"],
        structure=structure,
        charset=row["charset"],
        origin=row["origin"],
        at=row["flushed_at"],
    )
