"""Range profile: which tables have events in a range of bronze, how many of which op, and their DDL statements."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Row, SparkSession

from dmdelta.changelog.context import SourceContext
from dmdelta.changelog.range_counts import range_counts
from dmdelta.changelog.ranges import XaGroup, before, in_group, of_source, of_table, within
from dmdelta.changelog.xa import AT, committed_groups, position_of
from dmdelta.ddl.parse.statements import statement_targets
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.change import ROW_OPS, Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.model.spark_sql import literal

_Line = Row | Mapping[str, Any]
_STRUCTURE = (Op.SCHEMA.value, Op.DDL.value, Op.TRUNCATE.value)
IS_STRUCTURE = "ddl IS NOT NULL AND op IN ('schema', 'ddl', 'truncate')"
"""Structures and statements, as SQL. Files that have none are skipped by the number of NULLs in `ddl`."""
_OF_DATABASE = "(op = 'ddl' AND table_name IS NULL)"
_COUNTS = f"""
    schema_name, table_name, op, epoch, binlog_file, count(*) AS rows, count(image) AS partial,
    count_if(key_changed) AS moves, min(binlog_pos) AS first, max(binlog_pos) AS last,
    collect_list(CASE WHEN op IN ('schema', 'ddl', 'truncate') THEN struct({AT} AS at, op, ddl) END) AS structure
"""


@dataclass(frozen=True, slots=True)
class StructureEvent:
    """A `schema`, `ddl` or `truncate` row: its position, row ordinal, op and text."""

    position: Position
    row: int
    op: Op
    text: str


@dataclass(frozen=True, slots=True)
class StructuresBefore:
    """The newest structure of a table before `end`, and the statements after it, in order."""

    end: Position
    events: tuple[StructureEvent, ...]


@dataclass(frozen=True, slots=True)
class TableEvents:
    """The events of one table in a range.

    Attributes:
        rows: row changes that take effect in the range, by op.
        structure: its structures and statements, in order.
        first, last: the positions of its first and last event; an XA transaction has the position of its commit.
        partial: the number of partial row images.
        moves: the number of updates that change the primary key.
        groups: XA transactions with rows of this table that commit in the range.
        read: a snapshot read the table, which may have been empty.
    """

    schema: str
    table: str
    rows: Mapping[Op, int]
    first: Position
    last: Position
    structure: tuple[StructureEvent, ...] = ()
    partial: int = 0
    moves: int = 0
    groups: tuple[XaGroup, ...] = ()
    read: bool = False

    @property
    def name(self) -> TableName:
        return (self.schema, self.table)

    @property
    def ddl(self) -> int:
        """The number of DDL statements on the table."""
        return sum(event.op is not Op.SCHEMA for event in self.structure)

    @property
    def row_count(self) -> int:
        return sum(self.rows.values())


@dataclass(slots=True)
class _Gathered:
    """The events of one table while they are collected."""

    rows: dict[Op, int] = field(default_factory=lambda: defaultdict(int))
    structure: list[StructureEvent] = field(default_factory=list)
    positions: list[Position] = field(default_factory=list)
    partial: int = 0
    moves: int = 0
    groups: list[XaGroup] = field(default_factory=list)
    read: bool = False


def tables_with_events(spark: SparkSession, log: SourceContext, begin: Position, end: Position) -> list[TableEvents]:
    """Every table with events in [begin, end), from memory if it contains the range, else from one scan of it.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    if begin == end:
        return []
    with wrapped(log.bronze, "reading"):
        lines = range_counts(log.memory.rows(begin, end))
        return _gather(spark, log, within(begin, end), "true", lines)


def table_events(
    spark: SparkSession, log: SourceContext, table: TableName, begin: Position, end: Position
) -> TableEvents:
    """The events of one table in [begin, end), from memory if it contains the range, else from bronze.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    with wrapped(log.bronze, "reading"):
        lines = range_counts(log.memory.rows(begin, end, table))
        tables = _gather(spark, log, within(begin, end), of_table(*table), lines)
    return tables[0] if tables else TableEvents(*table, {}, begin, begin)


def structure_before(
    spark: SparkSession, lakehouse: Lakehouse, source_id: str, table: tuple[str, str], end: Position
) -> tuple[StructureEvent, ...]:
    """The last `schema` row of a table before `end` and every DDL row after it, in order; without one all DDL rows.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    of_database = f"({_OF_DATABASE} AND schema_name = {literal(table[0])})"
    with wrapped(lakehouse.bronze, "reading"):
        event = f"struct({AT} AS at, op, ddl)"
        query = f"""SELECT max_by({event}, struct(epoch, seq, -row)) FILTER (WHERE op = 'schema') AS recorded,
            collect_list({event}) FILTER (WHERE op <> 'schema') AS statements
            FROM {lakehouse.bronze} WHERE {of_source(source_id)} AND {before(end)}
            AND {IS_STRUCTURE} AND (({of_table(*table)}) OR {of_database})"""
        (row,) = spark.sql(query).collect()
    recorded = structure_event(row["recorded"]) if row["recorded"] is not None else None
    return since_recorded(recorded, map(structure_event, row["statements"]))


def since_recorded(recorded: StructureEvent | None, statements: Iterable[StructureEvent]) -> tuple[StructureEvent, ...]:
    """The newest `schema` row, and the statements after it in order."""
    later = [event for event in statements if recorded is None or event.position > recorded.position]
    return (*((recorded,) if recorded else ()), *_once(sorted(later, key=lambda event: (event.position, event.row))))


def _gather(
    spark: SparkSession, log: SourceContext, inside: str, of_tables: str, lines: Sequence[_Line] | None
) -> list[TableEvents]:
    """The events by table, for rows of the source that match `inside` and `of_tables` (SQL).

    Args:
        lines: the counts of these rows; None to query them.
    """
    source = of_source(log.source_id)
    if lines is None:
        lines = spark.sql(
            f"""SELECT {_COUNTS} FROM {log.bronze}
            WHERE {source} AND {inside} AND ((xid IS NULL AND {of_tables}) OR op = 'xa_commit' OR {_OF_DATABASE})
            GROUP BY schema_name, table_name, op, epoch, binlog_file"""
        ).collect()
    tables: dict[tuple[str, str], _Gathered] = defaultdict(_Gathered)
    if any(line["op"] == Op.XA_COMMIT.value for line in lines):
        _add_committed(tables, spark, log, inside, of_tables)
    for line in lines:
        if line["op"] == Op.XA_COMMIT.value:
            continue
        if line["table_name"] is None:
            for table in _dropped_tables(spark, log, line, of_tables):
                _add(tables[line["schema_name"], table], line)
        else:
            _add(tables[line["schema_name"], line["table_name"]], line)
    return [_finished(schema, table, gathered) for (schema, table), gathered in sorted(tables.items())]


def _dropped_tables(spark: SparkSession, log: SourceContext, line: _Line, of_tables: str) -> list[str]:
    """The tables in bronze of a database, if one of the statements on the database drops it.

    A renamed table always has a statement under its new name, but a structure only if row changes follow.
    """
    texts = [event["ddl"] or "" for event in line["structure"]]
    targets = [target for text in texts for target in statement_targets(text, line["schema_name"])]
    if all(target.op != "drop_database" for target in targets):
        return []
    rows = spark.sql(
        f"""SELECT DISTINCT table_name FROM {log.bronze} WHERE {of_source(log.source_id)} AND op IN ('schema', 'ddl')
        AND schema_name = {literal(line["schema_name"])} AND table_name IS NOT NULL AND {of_tables}"""
    ).collect()
    return sorted(row["table_name"] for row in rows)


def _add_committed(
    tables: dict[tuple[str, str], _Gathered],
    spark: SparkSession,
    log: SourceContext,
    inside: str,
    of_tables: str,
) -> None:
    for group, at, line in _committed(spark, log, inside, of_tables):
        gathered = tables[line["schema_name"], line["table_name"]]
        gathered.rows[Op(line["op"])] += line["rows"]
        gathered.partial += line["partial"]
        gathered.moves += line["moves"]
        gathered.positions.append(at)
        if group not in gathered.groups:
            gathered.groups.append(group)


def _add(gathered: _Gathered, line: _Line) -> None:
    gathered.positions += [Position(line["epoch"], line["binlog_file"], line[end]) for end in ("first", "last")]
    gathered.partial += line["partial"]
    gathered.moves += line["moves"]
    if line["op"] in _STRUCTURE:
        gathered.structure += map(structure_event, line["structure"])
    elif Op(line["op"]) in ROW_OPS:
        gathered.rows[Op(line["op"])] += line["rows"]
    gathered.read |= line["op"] == Op.WATERMARK.value


def _finished(schema: str, table: str, gathered: _Gathered) -> TableEvents:
    # Structure rows have negative ordinals within their event, starting with -1; the event's other rows follow.
    structure = _once(sorted(gathered.structure, key=lambda event: (event.position, event.row >= 0, abs(event.row))))
    return TableEvents(
        schema=schema,
        table=table,
        rows=dict(gathered.rows),
        first=min(gathered.positions),
        last=max(gathered.positions),
        structure=structure,
        partial=gathered.partial,
        moves=gathered.moves,
        groups=tuple(gathered.groups),
        read=gathered.read,
    )


def _once(events: Iterable[StructureEvent]) -> tuple[StructureEvent, ...]:
    """Remove duplicates: a statement that names a table twice has two rows."""
    return tuple({(event.position, event.text): event for event in events}.values())


def _committed(
    spark: SparkSession, log: SourceContext, inside: str, of_tables: str
) -> list[tuple[XaGroup, Position, Row]]:
    """The row changes of XA transactions that commit in the range, counted by transaction, table and op."""
    source = of_source(log.source_id)
    counted: list[tuple[XaGroup, Position, Row]] = []
    for group, at in committed_groups(spark, log.bronze, source, inside):
        lines = spark.sql(
            f"""SELECT schema_name, table_name, op, count(*) AS rows, count(image) AS partial,
            count_if(key_changed) AS moves FROM {log.bronze}
            WHERE {source} AND {in_group(group)} AND op IN ('insert', 'update', 'delete') AND {of_tables}
            GROUP BY schema_name, table_name, op"""
        ).collect()
        counted += [(group, at, line) for line in lines]
    return counted


def structure_event(event: _Line) -> StructureEvent:
    return StructureEvent(position_of(event["at"]), event["at"]["row"], Op(event["op"]), event["ddl"] or "")
