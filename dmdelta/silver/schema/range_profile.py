"""What lies in a range of bronze: which tables have events, of which kinds, and what happens to their structure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import Row, SparkSession

from dmdelta.changelog.ranges import XaGroup, before, in_group, of_source, of_table, within
from dmdelta.changelog.xa import AT, committed_groups, position_of
from dmdelta.ddl.parse.statements import statement_targets
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.change import ROW_OPS, Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.model.spark_sql import literal

_STRUCTURE = (Op.SCHEMA.value, Op.DDL.value, Op.TRUNCATE.value)
_OF_DATABASE = "(op = 'ddl' AND table_name IS NULL)"
_COUNTS = f"""
    schema_name, table_name, op, epoch, binlog_file, count(*) AS rows, count(image) AS partial,
    count_if(key_changed) AS moves, min(binlog_pos) AS first, max(binlog_pos) AS last,
    collect_list(CASE WHEN op IN ('schema', 'ddl', 'truncate') THEN struct({AT} AS at, op, ddl) END) AS structure
"""


@dataclass(frozen=True, slots=True)
class StructureEvent:
    """A `schema`, `ddl` or `truncate` row: where it is and its text."""

    position: Position
    row: int
    op: Op
    text: str


@dataclass(frozen=True, slots=True)
class TableEvents:
    """What a range holds of one table.

    Attributes:
        rows: row changes that take effect in the range, by op.
        structure: what happens to its structure, in order.
        first, last: where its first and its last event are; an XA commit counts where it commits.
        partial: row images with only some of the columns.
        moves: updates that change the primary key.
        groups: XA transactions with rows of this table that commit in the range.
        read: a snapshot read the table, if only to find it empty.
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
        """DDL statements on the table."""
        return sum(event.op is not Op.SCHEMA for event in self.structure)

    @property
    def row_count(self) -> int:
        return sum(self.rows.values())


@dataclass(slots=True)
class _Gathered:
    """The events of one table while they are added up."""

    rows: dict[Op, int] = field(default_factory=lambda: defaultdict(int))
    structure: list[StructureEvent] = field(default_factory=list)
    positions: list[Position] = field(default_factory=list)
    partial: int = 0
    moves: int = 0
    groups: list[XaGroup] = field(default_factory=list)
    read: bool = False


def tables_with_events(
    spark: SparkSession, lakehouse: Lakehouse, source_id: str, begin: Position, end: Position
) -> list[TableEvents]:
    """Every table with events in [begin, end), by one pass over the range.

    Args:
        source_id: the source whose log the positions are in.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    with wrapped(lakehouse.bronze, "reading"):
        return _gather(spark, lakehouse, (of_source(source_id), within(begin, end)), "true")


def table_events(
    spark: SparkSession, lakehouse: Lakehouse, source_id: str, table: tuple[str, str], begin: Position, end: Position
) -> TableEvents:
    """What [begin, end) holds of one table, named by (schema, table).

    Raises:
        LakehouseError: bronze cannot be read.
    """
    with wrapped(lakehouse.bronze, "reading"):
        found = _gather(spark, lakehouse, (of_source(source_id), within(begin, end)), of_table(*table))
    return found[0] if found else TableEvents(*table, {}, begin, begin)


def structure_before(
    spark: SparkSession, lakehouse: Lakehouse, source_id: str, table: tuple[str, str], end: Position
) -> tuple[StructureEvent, ...]:
    """The last `schema` row of a table before `end` and every DDL row behind it, in order; all of them if none told it.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    of_database = f"({_OF_DATABASE} AND schema_name = {literal(table[0])})"
    with wrapped(lakehouse.bronze, "reading"):
        event = f"struct({AT} AS at, op, ddl)"
        query = f"""SELECT max_by({event}, struct(epoch, seq, -row)) FILTER (WHERE op = 'schema') AS told,
            collect_list({event}) FILTER (WHERE op <> 'schema') AS statements
            FROM {lakehouse.bronze} WHERE {of_source(source_id)} AND {before(end)}
            AND (({of_table(*table)} AND op IN ('schema', 'ddl', 'truncate')) OR {of_database})"""
        (found,) = spark.sql(query).collect()
    told = _structure_event(found["told"]) if found["told"] is not None else None
    statements = map(_structure_event, found["statements"])
    later = [event for event in statements if told is None or event.position > told.position]
    return (*((told,) if told else ()), *_once(sorted(later, key=lambda event: (event.position, event.row))))


def _gather(spark: SparkSession, lakehouse: Lakehouse, scope: tuple[str, str], of_tables: str) -> list[TableEvents]:
    """The events of the rows of `scope` (source and range, SQL) and of the tables that `of_tables` (SQL) lets pass."""
    source, inside = scope
    lines = spark.sql(
        f"""SELECT {_COUNTS} FROM {lakehouse.bronze}
        WHERE {source} AND {inside} AND ((xid IS NULL AND {of_tables}) OR op = 'xa_commit' OR {_OF_DATABASE})
        GROUP BY schema_name, table_name, op, epoch, binlog_file"""
    ).collect()
    found: dict[tuple[str, str], _Gathered] = defaultdict(_Gathered)
    if any(line["op"] == Op.XA_COMMIT.value for line in lines):
        _add_committed(found, spark, lakehouse, scope, of_tables)
    for line in lines:
        if line["op"] == Op.XA_COMMIT.value:
            continue
        if line["table_name"] is None:
            for table in _dropped_tables(spark, lakehouse, source, line, of_tables):
                _add(found[line["schema_name"], table], line)
        else:
            _add(found[line["schema_name"], line["table_name"]], line)
    return [_finished(schema, table, gathered) for (schema, table), gathered in sorted(found.items())]


def _dropped_tables(spark: SparkSession, lakehouse: Lakehouse, source: str, line: Row, of_tables: str) -> list[str]:
    """The tables that bronze knows of in a database with statements on itself, if one of them drops it.

    A table that was renamed has a statement under its new name, and a structure only if rows followed.
    """
    texts = [event["ddl"] or "" for event in line["structure"]]
    targets = [target for text in texts for target in statement_targets(text, line["schema_name"])]
    if all(target.op != "drop_database" for target in targets):
        return []
    rows = spark.sql(
        f"""SELECT DISTINCT table_name FROM {lakehouse.bronze} WHERE {source} AND op IN ('schema', 'ddl')
        AND schema_name = {literal(line["schema_name"])} AND table_name IS NOT NULL AND {of_tables}"""
    ).collect()
    return sorted(row["table_name"] for row in rows)


def _add_committed(
    found: dict[tuple[str, str], _Gathered],
    spark: SparkSession,
    lakehouse: Lakehouse,
    scope: tuple[str, str],
    of_tables: str,
) -> None:
    for group, at, line in _committed(spark, lakehouse, scope, of_tables):
        gathered = found[line["schema_name"], line["table_name"]]
        gathered.rows[Op(line["op"])] += line["rows"]
        gathered.partial += line["partial"]
        gathered.moves += line["moves"]
        gathered.positions.append(at)
        if group not in gathered.groups:
            gathered.groups.append(group)


def _add(gathered: _Gathered, line: Row) -> None:
    gathered.positions += [Position(line["epoch"], line["binlog_file"], line[end]) for end in ("first", "last")]
    gathered.partial += line["partial"]
    gathered.moves += line["moves"]
    if line["op"] in _STRUCTURE:
        gathered.structure += map(_structure_event, line["structure"])
    elif Op(line["op"]) in ROW_OPS:
        gathered.rows[Op(line["op"])] += line["rows"]
    gathered.read |= line["op"] == Op.WATERMARK.value


def _finished(schema: str, table: str, gathered: _Gathered) -> TableEvents:
    # Rows of structure have negative ordinals at their event, -1 first; the rows of the event follow.
    structure = _once(sorted(gathered.structure, key=lambda event: (event.position, event.row >= 0, abs(event.row))))
    return TableEvents(
        schema,
        table,
        dict(gathered.rows),
        min(gathered.positions),
        max(gathered.positions),
        structure,
        gathered.partial,
        gathered.moves,
        tuple(gathered.groups),
        gathered.read,
    )


def _once(events: Iterable[StructureEvent]) -> tuple[StructureEvent, ...]:
    """A statement that names a table twice has two rows."""
    return tuple({(event.position, event.text): event for event in events}.values())


def _committed(
    spark: SparkSession, lakehouse: Lakehouse, scope: tuple[str, str], of_tables: str
) -> list[tuple[XaGroup, Position, Row]]:
    """The row changes of XA transactions that commit in the range, counted per transaction, table and op."""
    source, inside = scope
    counted: list[tuple[XaGroup, Position, Row]] = []
    for group, at in committed_groups(spark, lakehouse.bronze, source, inside):
        lines = spark.sql(
            f"""SELECT schema_name, table_name, op, count(*) AS rows, count(image) AS partial,
            count_if(key_changed) AS moves FROM {lakehouse.bronze}
            WHERE {source} AND {in_group(group)} AND op IN ('insert', 'update', 'delete') AND {of_tables}
            GROUP BY schema_name, table_name, op"""
        ).collect()
        counted += [(group, at, line) for line in lines]
    return counted


def _structure_event(event: Row) -> StructureEvent:
    return StructureEvent(position_of(event["at"]), event["at"]["row"], Op(event["op"]), event["ddl"] or "")
