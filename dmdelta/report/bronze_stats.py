"""Reads a period of bronze: a few aggregates, restricted to the days and files of the period."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import Row, SparkSession

from dmdelta.ddl.tokens import Kind, tokenize
from dmdelta.lakehouse.metadata_table import utc
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.change import ROW_OPS, Op
from dmdelta.model.position import Position
from dmdelta.model.spark_sql import literal
from dmdelta.report.batches import LandedRows
from dmdelta.report.facts import OPS, RowsLanded, SchemaChange
from dmdelta.report.time_buckets import Stretches

MOST_TABLES = 20
MOST_CHANGES = 50
STATEMENT_WIDTH = 240
"""Maximum length of a displayed statement, in characters."""
_QUOTES = ("'", '"')
_CHANGED = f"op IN ({', '.join(literal(op.value) for op in ROW_OPS if op is not Op.READ)})"
_NEWEST = f"max(committed_at) FILTER (WHERE {_CHANGED}) AS newest"
_COUNTED = f"op IN ({', '.join(map(literal, OPS))})"


@dataclass(frozen=True, slots=True)
class TableRows:
    """The rows of one source table that landed.

    Attributes:
        rows: by op.
        last: epoch and seq of the newest change; None if only a snapshot read the table.
        newest_change: when it was committed at the source.
    """

    source_id: str
    schema: str
    table: str
    rows: dict[str, int]
    last: tuple[int, int] | None
    newest_change: datetime | None


@dataclass(frozen=True, slots=True)
class LandedSince:
    """Bronze's rows of some sources that landed at `since` or later."""

    spark: SparkSession
    bronze: str
    sources: tuple[str, ...]
    since: datetime

    def rows_of_batches(self) -> list[LandedRows]:
        """One entry per landing.

        Raises:
            LakehouseError: bronze cannot be read.
        """
        landings = self._query(
            f"source_id, landed_at, max(struct(epoch, seq)) AS last, {_NEWEST}",
            "GROUP BY source_id, landed_at",
        )
        return [
            LandedRows(row["source_id"], utc(row["landed_at"]), (row["last"][0], row["last"][1]), _maybe(row["newest"]))
            for row in landings
        ]

    def rows_by_time(self, stretches: Stretches) -> tuple[RowsLanded, ...]:
        """The row changes per time bucket; a bucket without rows is omitted.

        Raises:
            LakehouseError: bronze cannot be read.
        """
        begin = f"timestamp_seconds(floor(unix_seconds(landed_at) / {stretches.seconds}) * {stretches.seconds})"
        buckets = self._query(f"{begin} AS at, {_counts()}", f"AND {_COUNTED} GROUP BY 1 ORDER BY 1")
        return tuple(RowsLanded(utc(row["at"]), _rows(row)) for row in buckets)

    def tables(self) -> tuple[list[TableRows], int]:
        """The tables with the most row changes, most first, and the number of tables with any.

        Raises:
            LakehouseError: bronze cannot be read.
        """
        busiest = self._query(
            f"source_id, schema_name, table_name, {_counts()}, count(*) AS total, count(*) OVER () AS tables, "
            f"max(struct(epoch, seq)) FILTER (WHERE {_CHANGED}) AS last, " + _NEWEST,
            f"AND {_COUNTED} GROUP BY source_id, schema_name, table_name "
            f"ORDER BY total DESC, source_id, schema_name, table_name LIMIT {MOST_TABLES}",
        )
        tables = [
            TableRows(
                row["source_id"],
                row["schema_name"],
                row["table_name"],
                _rows(row),
                (row["last"][0], row["last"][1]) if row["last"] else None,
                _maybe(row["newest"]),
            )
            for row in busiest
        ]
        return tables, busiest[0]["tables"] if busiest else 0

    def schema_changes(self) -> tuple[tuple[SchemaChange, ...], int]:
        """The newest statements, newest first, and their total number.

        Raises:
            LakehouseError: bronze cannot be read.
        """
        kinds = ", ".join(literal(op.value) for op in (Op.DDL, Op.TRUNCATE))
        statements = self._query(
            "committed_at, source_id, concat_ws('.', schema_name, table_name) AS table, "
            f"epoch, binlog_file, binlog_pos, left(ddl, {8 * STATEMENT_WIDTH}) AS ddl, count(*) OVER () AS statements",
            f"AND op IN ({kinds}) "
            f"ORDER BY committed_at DESC, source_id, epoch DESC, seq DESC, row DESC LIMIT {MOST_CHANGES}",
        )
        changes = tuple(
            SchemaChange(
                _maybe(row["committed_at"]),
                row["source_id"],
                row["table"],
                str(Position(row["epoch"], row["binlog_file"], row["binlog_pos"])),
                plan_shown(row["ddl"] or ""),
            )
            for row in statements
        )
        return changes, statements[0]["statements"] if statements else 0

    def _query(self, columns: str, rest: str) -> Sequence[Row]:
        chosen = ", ".join(map(literal, self.sources))
        # First the partitions of the days, then the rows within them that landed in time.
        statement = (
            f"SELECT {columns} FROM {self.bronze} WHERE source_id IN ({chosen}) "
            f"AND landed_on >= DATE {literal(self.since.date().isoformat())} "
            f"AND landed_at >= TIMESTAMP {literal(self.since.isoformat())} {rest}"
        )
        with wrapped(self.bronze, "reading"):
            return self.spark.sql(statement).collect()


def plan_shown(statement: str) -> str:
    """A statement on one line, without its literals and comments: they may contain personal data."""
    shown, end = "", 0
    for token in tokenize(statement):
        shown += " " if token.begin > end else ""
        end = token.end
        if token.text in _QUOTES and token.kind is Kind.MARK:
            shown += "'…"  # an unterminated string
            break
        shown += "'…'" if token.kind is Kind.STRING else statement[token.begin : token.end]
    line = " ".join(shown.split())
    return line if len(line) <= STATEMENT_WIDTH else line[: STATEMENT_WIDTH - 1] + "…"


def _maybe(moment: datetime | None) -> datetime | None:
    return utc(moment) if moment is not None else None


def _counts() -> str:
    return ", ".join(f"count_if(op = {literal(op)}) AS `{op}`" for op in OPS)


def _rows(row: Any) -> dict[str, int]:
    return {op: row[op] for op in OPS if row[op]}
