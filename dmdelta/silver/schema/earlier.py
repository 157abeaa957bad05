"""The structures of all tables of a source before a position, read at once: without Spark under a local root."""

import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from dmdelta.changelog.context import SourceContext
from dmdelta.changelog.landed_structures import landed_structures
from dmdelta.changelog.ranges import before, of_source
from dmdelta.changelog.xa import AT, position_of
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.silver.schema.range_profile import IS_STRUCTURE, StructureEvent, since_recorded, structure_event


@dataclass(frozen=True, slots=True)
class _Found:
    """
    Attributes:
        recorded: the newest `schema` row of each table.
        statements: by table, and by (database, None): the statements after it.
        ahead: the position of the newest `schema` row of tables that have one at `end` or later.
    """

    recorded: Mapping[TableName, StructureEvent]
    statements: Mapping[tuple[str, str | None], Sequence[StructureEvent]]
    ahead: Mapping[TableName, Position]


@dataclass(slots=True)
class EarlierStructures:
    """The structures and statements of a source's tables before a position, read when they are first needed.

    Attributes:
        end: the position; None: nothing has landed before this run.
    """

    spark: SparkSession
    log: SourceContext
    end: Position | None
    _found: _Found | None = None
    _reading: threading.Lock = field(default_factory=threading.Lock)

    def before(self, table: TableName) -> tuple[StructureEvent, ...]:
        """As `structure_before` for the table and `end`.

        Raises:
            LakehouseError: bronze cannot be read.
        """
        found = self._read()
        statements = (*found.statements.get(table, ()), *found.statements.get((table[0], None), ()))
        return since_recorded(found.recorded.get(table), statements)

    def versions(self) -> dict[TableName, int]:
        """By table, the version of its newest structure in the epoch of `end`, if no statement on the table follows.

        Raises:
            LakehouseError: bronze cannot be read.
        """
        recorded, versions = self._read().recorded, dict[TableName, int]()
        for name, event in recorded.items():
            if self.end is not None and event.position.epoch == self.end.epoch and len(self.before(name)) == 1:
                versions[name] = TableSchema.from_json(event.text).version
        return versions

    def ahead(self) -> Mapping[TableName, Position]:
        """The position of the newest structure of tables that have one at `end` or later.

        Raises:
            LakehouseError: bronze cannot be read.
        """
        return self._read().ahead

    def _read(self) -> _Found:
        with self._reading:
            if self._found is None:
                self._found = _Found({}, {}, {}) if self.end is None else _read(self.spark, self.log, self.end)
            return self._found


def _read(spark: SparkSession, log: SourceContext, end: Position) -> _Found:
    rows = landed_structures(spark, log)
    return _query(spark, log, end) if rows is None else _found_in(rows, end)


def _found_in(rows: Sequence[Mapping[str, Any]], end: Position) -> _Found:
    """What `landed_structures` has before a position."""
    recorded: dict[TableName, StructureEvent] = {}
    statements: dict[tuple[str, str | None], list[StructureEvent]] = defaultdict(list)
    ahead: dict[TableName, Position] = {}
    # An event's structures have negative ordinals: the first of them is -1.
    for row in sorted(rows, key=lambda row: (row["epoch"], row["seq"], -row["row"])):
        name, event = (row["schema_name"], row["table_name"]), structure_event(row)
        if event.op is not Op.SCHEMA:
            if event.position < end:
                statements[name].append(event)
        elif event.position < end:
            recorded[name] = event
        else:
            ahead[name] = event.position
    return _Found(recorded, statements, ahead)


def _query(spark: SparkSession, log: SourceContext, end: Position) -> _Found:
    event, earlier, is_schema = f"struct({AT} AS at, op, ddl)", before(end), f"op = '{Op.SCHEMA.value}'"
    query = f"""SELECT schema_name, table_name, recorded, ahead, filter(statements, one -> recorded IS NULL
            OR struct(one.at.epoch, one.at.seq) > struct(recorded.at.epoch, recorded.at.seq)) AS later
        FROM (SELECT schema_name, table_name,
            max_by({event}, struct(epoch, seq, -row)) FILTER (WHERE {is_schema} AND {earlier}) AS recorded,
            max_by({AT}, struct(epoch, seq)) FILTER (WHERE {is_schema} AND NOT {earlier}) AS ahead,
            collect_list({event}) FILTER (WHERE NOT {is_schema} AND {earlier}) AS statements
            FROM {log.bronze} WHERE {of_source(log.source_id)} AND {IS_STRUCTURE} GROUP BY schema_name, table_name)"""
    with wrapped(log.bronze, "reading"):
        rows = spark.sql(query).collect()
    recorded: dict[TableName, StructureEvent] = {}
    statements: dict[tuple[str, str | None], Sequence[StructureEvent]] = {}
    ahead: dict[TableName, Position] = {}
    for row in rows:
        name = (row["schema_name"], row["table_name"])
        statements[name] = [structure_event(one) for one in row["later"]]
        if row["recorded"] is not None:
            recorded[name] = structure_event(row["recorded"])
        if row["ahead"] is not None:
            ahead[name] = position_of(row["ahead"])
    return _Found(recorded, statements, ahead)
