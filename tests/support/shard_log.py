"""The in-memory log of two sources with shards: stands in for bronze as the sink reads it, without Spark."""

import itertools
import random
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from dmdelta.changelog.context import SourceContext
from dmdelta.changelog.variant_arrays import TEXT
from dmdelta.ddl.tracking.statement_effects import statement_effects
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, ConstantColumn, TableName, TableSchema
from dmdelta.rules import NO_RULES
from dmdelta.rules.routes import Routes, Rule
from dmdelta.sharding import Coordination
from dmdelta.sink.change import ACTS, Act
from dmdelta.sink.execution_log import ExecutedEvents
from dmdelta.sink.plan.reload import Reload
from dmdelta.sink.plan.table_mapping import TablePlan
from dmdelta.sink.read.change_reader import Past, SliceReader, TableChanges, left_over
from dmdelta.sink.read.columns import Columns
from dmdelta.sink.read.image_query import Rendering
from dmdelta.sink.read.slices import Rows, Slice, Statement, Survey
from dmdelta.sink.reload_feed import ReloadFeed
from dmdelta.sink.settings import SinkSettings
from dmdelta.sink.shards import ShardEffects, ShardLog, SinkShards
from dmdelta.sink.sink import Sink
from dmdelta.sink.startup import open_sink
from tests.support.servers import Server

FILE = "binlog.000001"
BEGIN = (Column("id", "int", nullable=False), Column("v", "int"), Column("w", "varchar", length=40))
OPS = {Act.INSERT: "insert", Act.UPDATE: "update", Act.DELETE: "delete"}
ROUTE = Rule("shards", "shard*", "t", "", "t", merges=True)


def at(offset: int) -> Position:
    return Position(1, FILE, offset)


@dataclass(frozen=True)
class Logged:
    """A row change; `values` are in the order of its structure's columns."""

    position: Position
    act: Act
    key: int
    values: tuple[object, ...]


@dataclass
class Shard:
    """The state of a shard at its source.

    Attributes:
        structures: where each starts, and its columns.
        rows: by key: column → value.
        written: its row changes, by structure number.
    """

    name: TableName
    keys: int
    structures: list[tuple[Position, TableSchema]]
    rows: dict[int, dict[str, object]] = field(default_factory=dict)
    written: dict[int, list[Logged]] = field(default_factory=lambda: defaultdict(list))

    @property
    def schema(self) -> TableSchema:
        return self.structures[-1][1]

    def before(self, position: Position) -> TableSchema:
        """Its structure at a position."""
        return [schema for begin, schema in self.structures if begin < position][-1]


@dataclass(frozen=True)
class Snapshot:
    """The rows of a shard that an ad-hoc snapshot has read, in the order of its columns."""

    reload: Reload
    schema: TableSchema
    rows: tuple[Logged, ...]


@dataclass
class MemoryLog:
    """A source's log that stands in for `BronzeLog`; `change` and `alter` write to its shards."""

    source_id: str
    shards: dict[TableName, Shard]
    chance: random.Random
    offset: int = 100
    statements: list[Statement] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)

    @classmethod
    def of(cls, number: int, chance: random.Random, shards: int = 2) -> "MemoryLog":
        names = [(f"shard_{number}_{shard}", "t") for shard in range(shards)]
        made = {
            name: Shard(name, 100_000 * (number * shards + count), [(at(4), TableSchema(*name, BEGIN, ("id",)))])
            for count, name in enumerate(names)
        }
        return cls(f"s{number}", made, chance)

    @property
    def end(self) -> Position:
        return at(self.offset + 50)

    def change(self, shard: Shard) -> None:
        """Insert, update or delete a row."""
        self.offset += 100
        columns = [column.name for column in shard.schema.columns if column.name != "id"]
        key = self.chance.choice([*shard.rows]) if shard.rows and self.chance.random() < 0.6 else 0
        act = Act.INSERT if not key else self.chance.choice([Act.UPDATE, Act.DELETE])
        if act is Act.INSERT:
            shard.keys += 1
            key = shard.keys
        if act is Act.DELETE:
            values = shard.rows.pop(key)
        else:
            values = shard.rows[key] = {name: self.chance.randrange(1000) for name in columns}
        logged = Logged(at(self.offset), act, key, _values(shard, key, values))
        shard.written[len(shard.structures) - 1].append(logged)

    def alter(self, shard: Shard, sql: str, default: object = None) -> None:
        """Change its structure; `default` is the value of an added column in existing rows."""
        self.offset += 100
        (effect,) = statement_effects(sql, shard.name[0], lambda _: shard.schema, mariadb=False)
        self.statements.append(Statement(at(self.offset), shard.name[0], (shard.name,), sql))
        shard.structures.append((at(self.offset), effect.after))
        pairs = [(column.name, origin.was) for column, origin in zip(effect.after.columns, effect.origins, strict=True)]
        shard.rows = {
            key: {name: values[was] if was else default for name, was in pairs if name != "id"}
            for key, values in shard.rows.items()
        }

    def snapshot(self, shard: Shard, changes: int = 0) -> None:
        """An ad-hoc snapshot reads a shard during some changes: its rows already contain them."""
        self.offset += 100
        position, epoch = at(self.offset), -1 - len(self.snapshots)
        for _ in range(changes):
            self.change(shard)
        chunk = Position.of_chunk(epoch, 1)
        rows = [Logged(chunk, Act.INSERT, key, _values(shard, key, values)) for key, values in shard.rows.items()]
        safe_until = at(self.offset + 1) if changes else None
        self.snapshots.append(Snapshot(Reload(shard.name, epoch, position, safe_until), shard.schema, tuple(rows)))

    @property
    def reloads(self) -> tuple[Reload, ...]:
        return tuple(one.reload for one in self.snapshots)

    def tables(self) -> set[TableName]:
        return set(self.shards)

    def tables_of(self, schema: str) -> list[TableName]:
        return sorted(name for name in self.shards if name[0] == schema)

    def windows(self, begin: Position, end: Position) -> list[tuple[Position, Position]]:
        """A window for each event of the log; of a snapshot's rows, one."""
        written = {one.position for shard in self.shards.values() for part in shard.written.values() for one in part}
        return list(itertools.pairwise([begin, *sorted(at for at in written if begin < at < end), end]))

    def survey(self, begin: Position, end: Position) -> Survey:
        if begin.epoch < 0:
            return Survey(begin, end, self._rows_read(begin), [], [])
        found = []
        for name, shard in self.shards.items():
            for number, (_, schema) in enumerate(shard.structures):
                inside = [one for one in shard.written[number] if begin <= one.position < end]
                if inside:
                    ops, seqs = frozenset(OPS[one.act] for one in inside), [one.position.seq for one in inside]
                    version = replace(schema, schema=name[0]).version
                    found.append(Rows(name, version, ops, first=min(seqs), last=max(seqs)))
        return Survey(begin, end, found, [], [one for one in self.statements if begin <= one.position < end])

    def _rows_read(self, begin: Position) -> list[Rows]:
        (one,) = (one for one in self.snapshots if one.reload.epoch == begin.epoch)
        return [Rows(one.reload.table, one.schema.version, frozenset(("read",)), first=begin.seq, last=begin.seq)]

    def structures(self, versions: Collection[int], begin: Position) -> dict[int, TableSchema]:
        known = {schema.version: schema for shard in self.shards.values() for _, schema in shard.structures}
        return {version: known[version] for version in versions}

    def statement_at(self, position: Position) -> Statement | None:
        return next((one for one in self.statements if one.position == position), None)

    def statements_on(self, table: TableName, end: Position) -> list[str]:
        return []

    def groups(self, begin: Position, end: Position) -> tuple[()]:
        return ()

    def effects(self, name: TableName, statement: Statement) -> ShardEffects:
        before = self.shards[name].before(statement.position)
        effects = tuple(statement_effects(statement.text, name[0], lambda _: before, mariadb=False))
        return ShardEffects(effects, effects[-1].after)

    def columns(self, wanted: Rendering, part: Slice) -> Columns:
        """The changes of a table in a slice, rendered."""
        plan, rows = wanted.plan, self._rows_in(wanted.plan, part)
        seq, count = np.array([one.position.seq for one in rows], np.int64), len(rows)
        constants = [f"'{one.value}'" for one in plan.schema.columns if isinstance(one, ConstantColumn)]

        def text(found: list[str | None]) -> object:
            return pa.array(found, TEXT)

        return Columns(
            acts=np.array([ACTS.index(one.act) for one in rows], np.int8),
            seq=seq,
            own=seq,
            row=np.arange(count) if part.begin.epoch < 0 else np.zeros(count, np.int64),
            identity=text([_tuple((one.key, *constants)) if constants else str(one.key) for one in rows]),
            was=pa.nulls(count, TEXT),
            values=text([None if one.act is Act.DELETE else _tuple((*one.values, *constants)) for one in rows]),
            sets=None,
            new=(text([f"{one.key}.{plan.shape.table}" for one in rows]),),
            old=(pa.nulls(count, TEXT),),
        )

    def _rows_in(self, plan: TablePlan, part: Slice) -> list[Logged]:
        if part.begin.epoch < 0:
            return [row for one in self.snapshots if one.reload.epoch == part.begin.epoch for row in one.rows]
        shard = self.shards[plan.source]
        schemas = [schema for _, schema in shard.structures]
        own = tuple(column for column in plan.schema.columns if not isinstance(column, ConstantColumn))
        number = next(n for n, schema in enumerate(schemas) if schema.columns == own)
        same = [n for n, schema in enumerate(schemas) if schema.version == schemas[number].version]
        rows = [one for n in same for one in shard.written[n] if part.begin <= one.position < part.end]
        return sorted(rows, key=lambda one: one.position)


def _values(shard: Shard, key: int, values: dict[str, object]) -> tuple[object, ...]:
    return tuple(key if one.name == "id" else values[one.name] for one in shard.schema.columns)


def _tuple(values: tuple[object, ...]) -> str:
    return f"({','.join('NULL' if value is None else str(value) for value in values)})"


@dataclass(frozen=True, slots=True)
class MemoryReader(SliceReader):
    """Reads slices of a `MemoryLog`."""

    def _read(self, wanted: Rendering, part: Slice) -> TableChanges:
        past = Past(part.begin.epoch, self.executed, self.points.get(wanted.plan.source))
        return left_over(wanted.plan, self.log.columns(wanted, part), past)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Task:
    """A task whose shards are all routed to the table `t` of a target database.

    Attributes:
        shards: not coordinated if the mode is None.
        extracted: the table has a column with the shard's schema, which distinguishes the rows.
    """

    target: str
    settings: SinkSettings
    shards: Coordination
    extracted: bool = False

    def open(self, log: MemoryLog, run: str, feed: ReloadFeed | None = None) -> Sink:
        """A sink over a log."""
        extracts = (("schema", "^(.*)$", "shard"),) if self.extracted else ()
        route = replace(ROUTE, target_schema=self.target, extracts=extracts)
        rules = replace(NO_RULES, source_id=log.source_id, routes=Routes((route,)))
        source = SourceContext(Lakehouse(root="/nowhere"), "shards", log.source_id, run, "mysql", rules)
        looked_up = ShardLog(lambda name, position: log.shards[name].before(position), log.effects)
        expected = {name: shard.schema for name, shard in log.shards.items()}
        sides = SinkShards(log.source_id, rules, self.shards, self.settings.sources, looked_up, expected)
        sides.register()
        coordinated = sides if self.shards.mode is not None else None
        sink = open_sink(None, source, self.settings, None, feed, coordinated)  # type: ignore[arg-type]
        use(sink, log)
        return sink


def use(sink: Sink, log: MemoryLog) -> None:
    """Let a sink read a log."""
    reader = MemoryReader(
        None,  # type: ignore[arg-type]
        log,  # type: ignore[arg-type]
        sink.tables,
        sink.source,
        settings=sink.settings,
        executed=ExecutedEvents(),
    )
    sink.statements.log = log  # type: ignore[assignment]
    sink.reloader.reader = reader
    sink.reader = replace(reader, executed=sink.executed, points=sink.reader.points, held=sink.shards.held)


def union_of(server: Server, database: str, logs: list[MemoryLog]) -> list[str]:
    """The differences between a target table and the union of its shards."""
    found = []
    for shard in (shard for log in logs for shard in log.shards.values()):
        names = [column.name for column in shard.schema.columns]
        rows = server.query(f"SELECT {', '.join(f'`{name}`' for name in names)} FROM t", database)
        own = {row[0]: tuple(map(_plain, row[1:])) for row in rows}
        for key, values in shard.rows.items():
            expected = tuple(_plain(values[name]) for name in names if name != "id")
            if own.get(key) != expected:
                found.append(f"{shard.name[0]} {key}: {own.get(key)} instead of {expected}")
    ((count,),) = server.query("SELECT COUNT(*) FROM t", database)
    total = sum(len(shard.rows) for log in logs for shard in log.shards.values())
    return found if count == total else [*found, f"{count} rows instead of {total}"]


def _plain(value: object) -> str | None:
    return None if value is None else str(value)
