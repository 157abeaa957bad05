"""Reads from bronze what the sink needs to know about a range: changed tables, transaction starts, structures."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import Row, SparkSession

from dmdelta.changelog.ranges import XaGroup, in_group, of_source, within
from dmdelta.changelog.xa import committed_groups
from dmdelta.errors import UnknownSchema
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.model.spark_sql import literal
from dmdelta.sink.read.range_index import LogLines
from dmdelta.sink.read.slices import SLICE_BYTES, WINDOW_ROWS, Cut, Rows, Statement, Survey, places, plan_windows

_STATEMENTS = "('ddl', 'truncate')"
_SCHEMA_OPS = "('schema', 'ddl', 'truncate')"
_SCHEMA_COLUMNS = ("binlog_file", "binlog_pos", "schema_name", "table_name", "ddl")
_CHANGES = "('read', 'insert', 'update', 'delete')"


@dataclass(slots=True)
class BronzeLog:
    """One source's log in bronze.

    Attributes:
        bronze: the SQL identifier of the table.
        bucket: approximate size of a slice, in bytes of the log.
        window: approximate number of rows that a survey of a long range has.
    """

    spark: SparkSession
    bronze: str
    source_id: str
    bucket: int = SLICE_BYTES
    window: int = WINDOW_ROWS
    _structures: dict[int, TableSchema] = field(default_factory=dict)

    def windows(self, begin: Position, end: Position) -> list[tuple[Position, Position]]:
        """Split [begin, end), which lies in one epoch, into parts that one survey can hold in memory.

        Raises:
            LakehouseError: bronze cannot be read.
        """
        with wrapped(self.bronze, "reading"):
            counted = self.spark.sql(
                f"""SELECT (seq - {begin.seq}L) DIV {self.bucket} AS bucket, count(*) AS rows FROM {self.bronze}
                WHERE {of_source(self.source_id)} AND {within(begin, end)} GROUP BY bucket"""
            ).collect()
        rows = {begin.seq + row["bucket"] * self.bucket: row["rows"] for row in counted}
        return plan_windows(begin, end, rows, self.window)

    def survey(self, begin: Position, end: Position) -> Survey:
        """Survey [begin, end), which lies in one epoch.

        Raises:
            LakehouseError: bronze cannot be read.
        """
        inside = within(begin, end)
        with wrapped(self.bronze, "reading"):
            # One query of numbers without aggregation: in Spark each further pass over a file costs more than the rest.
            schema_columns = ", ".join(f"IF(op IN {_SCHEMA_OPS}, {name}, NULL) AS {name}" for name in _SCHEMA_COLUMNS)
            table = self.spark.sql(
                f"""SELECT seq, op, schema_version, image IS NOT NULL AS partial, key_changed,
                xxhash64(coalesce(gtid, CAST(committed_at AS STRING))) AS transaction, {schema_columns}
                FROM {self.bronze} WHERE {of_source(self.source_id)} AND {inside}
                AND (xid IS NULL OR op = 'xa_commit')"""
            ).toArrow()
            marks = table.filter(table.column("binlog_file").is_valid()).to_pylist()
            structures = {one["schema_version"]: one["ddl"] for one in marks if one["op"] == Op.SCHEMA.value}
            self._structures.update({version: TableSchema.from_json(ddl) for version, ddl in structures.items()})
            lines = LogLines.of(table, begin.seq, self.bucket)
            rows = self._rows(lines, begin)
            rows += self._committed(inside) if Op.XA_COMMIT in lines.ops else []
            rows += _loaded(marks) if begin.chunk is not None else []
            place = places(begin)
            cuts = [Cut(place(seq), boundary) for seq, boundary in lines.cuts()]
        statements = _statements(begin.epoch, [one for one in marks if one["op"] != Op.SCHEMA.value])
        return Survey(begin, end, rows, cuts, [self._with_tables(one) for one in statements])

    def _with_tables(self, statement: Statement) -> Statement:
        """DROP DATABASE does not name its tables."""
        if statement.tables:
            return statement
        dropped = statement.dropped_schemas
        return replace(statement, tables=tuple(name for schema in dropped for name in self.tables_of(schema)))

    def _rows(self, log_lines: LogLines, begin: Position) -> list[Rows]:
        lines = log_lines.tables()
        names = self.structures({line.version for line in lines}, begin)
        return [
            Rows(
                names[line.version].name,
                line.version,
                line.ops,
                line.partial,
                line.moves,
                first=line.first,
                last=line.last,
            )
            for line in lines
        ]

    def statement_at(self, at: Position) -> Statement | None:
        """The statement at a position; None if there are row changes.

        Raises:
            LakehouseError: bronze cannot be read.
        """
        following = Position(at.epoch, at.binlog_file, at.offset + 1)
        return next(iter(self.survey(at, following).statements), None)

    def groups(self, begin: Position, end: Position) -> tuple[XaGroup, ...]:
        """The XA transactions that commit in [begin, end)."""
        with wrapped(self.bronze, "reading"):
            groups = committed_groups(self.spark, self.bronze, of_source(self.source_id), within(begin, end))
        return tuple(group for group, _ in groups)

    def structures(self, versions: Collection[int], begin: Position) -> dict[int, TableSchema]:
        """Structures by version: of the surveyed ranges, else from bronze, which has each before its first row.

        Args:
            begin: the position for which they are needed.

        Raises:
            UnknownSchema: bronze lacks one of them.
            LakehouseError: bronze cannot be read.
        """
        missing = [version for version in versions if version not in self._structures]
        if missing:
            query = f"""SELECT schema_version, any_value(ddl) AS ddl FROM {self.bronze}
                WHERE {of_source(self.source_id)} AND ddl IS NOT NULL AND op = 'schema'
                AND schema_version IN ({", ".join(map(str, missing))}) GROUP BY schema_version"""
            with wrapped(self.bronze, "reading"):
                rows = self.spark.sql(query).collect()
            self._structures.update({row["schema_version"]: TableSchema.from_json(row["ddl"]) for row in rows})
        unknown = [version for version in versions if version not in self._structures]
        if unknown:
            raise UnknownSchema(
                "bronze lacks the structure of some rows",
                hint="they were landed by an older dmdelta: run with --remove-meta",
                position=str(begin),
            )
        return {version: self._structures[version] for version in versions}

    def tables(self) -> set[TableName]:
        """All tables of which bronze has a structure.

        Raises:
            LakehouseError: bronze cannot be read.
        """
        with wrapped(self.bronze, "reading"):
            rows = self.spark.sql(
                f"SELECT DISTINCT schema_name, table_name FROM {self.bronze} "
                f"WHERE {of_source(self.source_id)} AND ddl IS NOT NULL AND op = 'schema'"
            ).collect()
        return {(row["schema_name"], row["table_name"]) for row in rows}

    def tables_of(self, schema: str) -> list[TableName]:
        """All tables of a schema of which bronze has a structure or a statement, in order.

        Raises:
            LakehouseError: bronze cannot be read.
        """
        with wrapped(self.bronze, "reading"):
            rows = self.spark.sql(
                f"""SELECT DISTINCT table_name FROM {self.bronze} WHERE {of_source(self.source_id)}
                AND op IN {_SCHEMA_OPS} AND schema_name = {literal(schema)} AND table_name IS NOT NULL"""
            ).collect()
        return sorted((schema, row["table_name"]) for row in rows)

    def statements_on(self, table: TableName, end: Position) -> list[str]:
        """The statements on a table before a position, oldest first.

        Raises:
            LakehouseError: bronze cannot be read.
        """
        with wrapped(self.bronze, "reading"):
            rows = self.spark.sql(
                f"""SELECT ddl FROM {self.bronze} WHERE {of_source(self.source_id)} AND op IN {_STATEMENTS}
                AND schema_name = {literal(table[0])} AND table_name = {literal(table[1])}
                AND (epoch, seq) < ({end.epoch}, {end.seq}L) ORDER BY epoch, seq, row"""
            ).collect()
        return [row["ddl"] for row in rows]

    def _committed(self, inside: str) -> list[Rows]:
        """The changes of XA transactions that commit in the range, wherever the changes are."""
        committed: list[Rows] = []
        for group, at in committed_groups(self.spark, self.bronze, of_source(self.source_id), inside):
            lines = self.spark.sql(
                f"""SELECT schema_name, table_name, schema_version, op, count(image) AS partial,
                count_if(key_changed) AS moves, min(seq) AS first, max(seq) AS last
                FROM {self.bronze} WHERE {of_source(self.source_id)} AND {in_group(group)}
                AND op IN {_CHANGES} GROUP BY schema_name, table_name, schema_version, op"""
            ).collect()
            committed += [replace(_rows(line), committed=True, first=at.seq, last=at.seq) for line in lines]
        return committed


def _loaded(marks: Sequence[Mapping[str, Any]]) -> list[Rows]:
    """The tables of a full load, with or without rows."""
    return [
        Rows(
            (one["schema_name"], one["table_name"]),
            one["schema_version"],
            frozenset(),
            first=one["seq"],
            last=one["seq"],
        )
        for one in marks
        if one["op"] == Op.SCHEMA.value
    ]


def _statements(epoch: int, marks: Sequence[Mapping[str, Any]]) -> list[Statement]:
    """One per position: a statement on several tables has a row for each."""
    statements: dict[Position, Statement] = {}
    for row in marks:
        at = Position(epoch, row["binlog_file"], row["binlog_pos"])
        known = statements.get(at)
        tables = known.tables if known else ()
        if row["table_name"] is not None:
            tables = (*tables, (row["schema_name"], row["table_name"]))
        statements[at] = Statement(at, row["schema_name"] or "", tables, row["ddl"] or "")
    return [statements[at] for at in sorted(statements)]


def _rows(line: Row) -> Rows:
    name = (line["schema_name"], line["table_name"])
    ops = frozenset((line["op"],))
    first, last = line["first"], line["last"]
    return Rows(name, line["schema_version"], ops, line["partial"], line["moves"], first=first, last=last)
