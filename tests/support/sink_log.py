"""A handmade log and ad-hoc snapshots for the sink, without bronze and without Spark."""

import itertools
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from dmdelta.changelog.variant_arrays import TEXT
from dmdelta.model.mysql_sql import quoted_name
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableName, TableSchema
from dmdelta.rules import NO_RULES
from dmdelta.sink.change import ACTS, Act
from dmdelta.sink.execution_log import ExecutedEvents
from dmdelta.sink.read.change_reader import Past, TableChanges, left_over
from dmdelta.sink.read.columns import Columns
from dmdelta.sink.read.slices import Cut, Rows, Slice, Statement, Survey

COLUMNS = (Column("id", "int"), Column("v", "int"))


@dataclass(frozen=True)
class Event:
    """A row change: `id` and `v` after it, or before a delete."""

    at: Position
    table: TableName
    op: str
    id: int
    v: int


@dataclass
class HandLog:
    """Tables with the columns `id` and `v`; those in `keyless` have no key. One transaction for each event."""

    database: str
    keyless: tuple[str, ...] = ()
    events: list[Event] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)

    def log(self, offset: int, table: str, op: str, id_: int, v: int = 0) -> None:
        self.events.append(Event(Position(1, "binlog.000001", offset), (self.database, table), op, id_, v))

    def snapshot(self, epoch: int, chunk: int, table: str, rows: dict[int, int]) -> None:
        at = Position.of_chunk(epoch, chunk)
        self.events += [Event(at, (self.database, table), "read", id_, v) for id_, v in rows.items()]

    def structure(self, name: TableName) -> TableSchema:
        return TableSchema(*name, COLUMNS, () if name[1] in self.keyless else ("id",))

    def windows(self, begin: Position, end: Position) -> list[tuple[Position, Position]]:
        """A window for each event."""
        edges = sorted({one.at for one in self.events if begin < one.at < end})
        return list(itertools.pairwise([begin, *edges, end]))

    def survey(self, begin: Position, end: Position) -> Survey:
        inside = [one for one in self.events if begin <= one.at < end]
        rows = [
            Rows(one.table, self.structure(one.table).version, frozenset((one.op,)), first=one.at.seq, last=one.at.seq)
            for one in inside
        ]
        cuts = [Cut(one.at, True) for one in inside if one.at > begin]
        return Survey(begin, end, rows, cuts, [one for one in self.statements if begin <= one.position < end])

    def tables(self) -> set[TableName]:
        return {one.table for one in self.events}

    def tables_of(self, schema: str) -> list[TableName]:
        return sorted(name for name in self.tables() if name[0] == schema)

    def structures(self, versions: set[int], _: Position) -> dict[int, TableSchema]:
        found = {self.structure(name).version: self.structure(name) for name in self.tables()}
        return {version: found[version] for version in versions}

    def statements_on(self, *_: object) -> list[str]:
        return []


@dataclass(frozen=True)
class HandReader:
    """Reads slices of a `HandLog`."""

    log: HandLog
    tables: Any
    source: Any
    executed: ExecutedEvents

    def read(self, part: Slice) -> list[list[TableChanges]]:
        found = []
        for rows in part.rows:
            name = rows.name
            schema = self.log.structure(name)
            plan = self.tables.plan(name, schema.version, schema, NO_RULES.route(*name))
            every = self._columns(part, name)
            found.append([left_over(plan, every, Past(part.begin.epoch, self.executed))])
        return found

    def _columns(self, part: Slice, name: TableName) -> Columns:
        same = [one for one in self.log.events if one.table == name]
        events = [one for one in same if part.begin <= one.at < part.end]
        acts = [Act.INSERT if one.op in ("read", "insert") else Act(one.op) for one in events]
        seq = np.array([one.at.seq for one in events], np.int64)
        row = np.array([[other for other in same if other.at == one.at].index(one) for one in events], np.int64)
        keyless = name[1] in self.log.keyless
        conditions = [f"`id` = {one.id} AND `v` = {one.v}" for one in events]
        identity = [("" if act is Act.INSERT else one) for act, one in zip(acts, conditions, strict=True)]
        values = [f"({one.id},{one.v})" if one.op != "delete" else None for one in events]
        table = quoted_name(*name)
        keys = [f"({one.id},{one.v}).{table}" if keyless else f"{one.id}.{table}" for one in events]
        return Columns(
            acts=np.array([ACTS.index(act) for act in acts], np.int8),
            seq=seq,
            own=seq,
            row=row,
            identity=pa.array(identity if keyless else [str(one.id) for one in events], TEXT),
            was=pa.nulls(len(events), TEXT),
            values=pa.array(values, TEXT),
            sets=None,
            new=(pa.array(keys, TEXT),),
        )


def use(sink: Any, log: HandLog) -> None:
    """Let a sink read a log."""
    source = replace(sink.source, rules=NO_RULES)
    sink.reader = HandReader(log, sink.tables, source, sink.executed)
    sink.statements.log = log
    sink.reloader.reader = HandReader(log, sink.tables, source, ExecutedEvents())
