"""Reads bronze's row changes of a range of the log, for `verify`."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import localcontext
from typing import Any

from pyspark.sql import Row, SparkSession

from dmdelta.changelog.context import SourceContext
from dmdelta.changelog.ranges import of_source, of_table, within
from dmdelta.lakehouse.history import CommitTag
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.verification.compare import BronzeCount, BronzeRow

_DIGITS = 80
_IN_LOG = "op IN ('insert', 'update', 'delete')"
_COLUMNS = "binlog_file, binlog_pos, schema_name, table_name, op, row, gtid, schema_version, before, after, seq, epoch"


@dataclass(slots=True)
class BronzeStretches:
    """Reads bronze range by range.

    Attributes:
        tables: read only these; None: all.
    """

    spark: SparkSession
    source: SourceContext
    tables: Collection[TableName] | None = None
    _structures: dict[int, TableSchema] = field(default_factory=dict)

    def read(
        self, begin: Position, end: Position, unread: Sequence[Position]
    ) -> tuple[list[BronzeRow], list[BronzeCount]]:
        """The rows of begin ≤ row < end, and the row counts at the places of `unread`, whose values are not read.

        Raises:
            LakehouseError: bronze cannot be read.
        """
        places = ", ".join(str(position.seq) for position in unread)
        condition = self._condition(begin, end)
        readable = f"{condition} AND seq NOT IN ({places})" if unread else condition
        selected = self._query(f"SELECT {_COLUMNS} FROM {self.source.bronze} WHERE {readable}")
        self._load_schemas({int(row["schema_version"]) for row in selected if row["schema_version"] is not None})
        rows = [self._row(row) for row in sorted(selected, key=lambda row: (row["seq"], row["row"]))]
        return rows, self.counts(f"{condition} AND seq IN ({places})") if unread else []

    def count(self, begin: Position, end: Position) -> list[BronzeCount]:
        """The row counts of begin ≤ row < end."""
        return self.counts(self._condition(begin, end))

    def counts(self, condition: str) -> list[BronzeCount]:
        """The row counts of the rows that meet a condition (SQL)."""
        columns = "binlog_file, binlog_pos, schema_name, table_name, op"
        query = f"SELECT {columns}, count(*) AS number FROM {self.source.bronze} WHERE {condition} GROUP BY {columns}"
        return [BronzeCount(_place(row), _name(row), row["op"], row["number"]) for row in self._query(query)]

    def known_tables(self) -> list[TableName]:
        """The tables of the source that bronze has rows or schemas of."""
        condition = f"{of_source(self.source.source_id)} AND table_name IS NOT NULL"
        query = f"SELECT DISTINCT schema_name, table_name FROM {self.source.bronze} WHERE {condition}"
        return [_name(row) for row in self._query(query)]

    def held(self) -> list[tuple[Position, Position]]:
        """For each epoch, the positions of its first row change and after the beginning of its last."""
        condition = f"{of_source(self.source.source_id)} AND epoch > 0 AND {_IN_LOG}"
        places = "struct(epoch, seq, binlog_file, binlog_pos)"
        rows = self._query(
            f"SELECT epoch, min({places}) AS first, max({places}) AS last FROM {self.source.bronze} "
            f"WHERE {condition} GROUP BY epoch ORDER BY epoch"
        )
        return [(_position(row["first"], 0), _position(row["last"], 1)) for row in rows]

    def _condition(self, begin: Position, end: Position) -> str:
        parts = [of_source(self.source.source_id), within(begin, end), _IN_LOG]
        if self.tables is not None:
            parts.append("(" + (" OR ".join(f"({of_table(*name)})" for name in sorted(self.tables)) or "false") + ")")
        return " AND ".join(parts)

    def _load_schemas(self, versions: Iterable[int]) -> None:
        """Load the schemas that rows refer to."""
        new = sorted(set(versions) - self._structures.keys())
        if not new:
            return
        listed = ", ".join(map(str, new))
        rows = self._query(
            f"SELECT schema_version, max(ddl) AS ddl FROM {self.source.bronze} "
            f"WHERE {of_source(self.source.source_id)} AND ddl IS NOT NULL AND op = 'schema' "
            f"AND schema_version IN ({listed}) GROUP BY schema_version"
        )
        self._structures.update((row["schema_version"], TableSchema.from_json(row["ddl"])) for row in rows)

    def _row(self, row: Row) -> BronzeRow:
        structure = self._structures.get(row["schema_version"])
        before, after = image_of(row["before"]), image_of(row["after"])
        return BronzeRow(
            place=_place(row),
            table=_name(row),
            op=row["op"],
            row=row["row"],
            gtid=row["gtid"],
            structure=structure,
            before=before,
            after=after,
        )

    def _query(self, query: str) -> list[Row]:
        with wrapped(self.source.bronze, "reading"):
            return self.spark.sql(query).collect()


def image_of(variant: Any) -> Any:
    """A row image as a mapping of columns to values; None if there is no image."""
    if variant is None:
        return None
    with localcontext() as context:
        context.prec = _DIGITS  # PySpark computes decimals, which rounds to 28 digits
        return variant.toPython()


def _place(row: Row) -> tuple[str, int]:
    return row["binlog_file"], row["binlog_pos"]


def _name(row: Row) -> TableName:
    return row["schema_name"], row["table_name"]


def _position(row: Row, after: int) -> Position:
    return Position(row["epoch"], row["binlog_file"], row["binlog_pos"] + after)


Range = tuple[Position, Position]


def plan_ranges(landed: Sequence[CommitTag], held: Sequence[Range], expired: Position | None) -> list[Range]:
    """The ranges of the log that bronze should have, oldest first, each in one epoch.

    Args:
        landed: bronze's landing commits, oldest first, as far back as its history goes.
        held: for the older part, the begin and end of bronze's row changes in each epoch.
        expired: row changes up to this position (inclusive) may have expired from bronze.
    """
    ranges: list[Range] = []
    for tag in landed:
        if tag.again or tag.begin.chunk is not None or tag.end.chunk is not None:
            continue  # a snapshot's commit: its rows are in no log
        if ranges and ranges[-1][1].epoch == tag.begin.epoch:
            # Landing leaves no gap in an epoch. The log has what one lacks, so its events are reported as missing.
            ranges[-1] = ranges[-1][0], max(ranges[-1][1], tag.end)
        else:
            ranges.append((tag.begin, tag.end))
    oldest = ranges[0][0] if ranges else None
    older = [(first, last) for first, last in held if oldest is None or first < oldest]
    ranges = [(first, oldest if oldest and oldest.epoch == last.epoch else last) for first, last in older] + ranges
    if expired is not None:
        after = Position(expired.epoch, expired.binlog_file, expired.offset + 1)
        ranges = [(max(begin, after), end) for begin, end in ranges if end > after]
    return [(begin, end) for begin, end in ranges if begin < end]


def clipped(ranges: Sequence[Range], begin: Position | None, end: Position | None) -> list[Range]:
    """The parts of ranges within begin ≤ place < end."""
    cut = [(max(one, begin) if begin else one, min(other, end) if end else other) for one, other in ranges]
    return [(one, other) for one, other in cut if one < other]
