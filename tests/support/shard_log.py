"""The log of two sources with shards, in memory: what the sink reads of bronze, without Spark."""

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
from dmdelta.model.schema import Column, TableName, TableSchema
from dmdelta.rules import NO_RULES
from dmdelta.rules.routes import Routes, Rule
from dmdelta.sharding import Coordination
from dmdelta.sink.change import ACTS, Act
from dmdelta.sink.read.change_reader import Past, SliceReader, TableChanges, left_over
from dmdelta.sink.read.columns import Columns
from dmdelta.sink.read.image_query import Rendering
from dmdelta.sink.read.slices import Rows, Slice, Statement, Survey
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
    """A row change; `values` are those of its structure's columns."""

    position: Position
    act: Act
    key: int
    values: tuple[object, ...]


@dataclass
class Shard:
    """A shard as it is at its source.

    Attributes:
        structures: where each begins, and its columns.
        rows: by key: column → value.
        written: its row changes, by the number of the structure.
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


@dataclass
class MemoryLog:
    """A source's log, as `BronzeLog`: its shards are written to by `change` and `alter`."""

    source_id: str
    shards: dict[TableName, Shard]
    chance: random.Random
    offset: int = 100
    statements: list[Statement] = field(default_factory=list)

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
        texts = tuple(key if one.name == "id" else values[one.name] for one in shard.schema.columns)
        shard.written[len(shard.structures) - 1].append(Logged(at(self.offset), act, key, texts))

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

    def survey(self, begin: Position, end: Position) -> Survey:
        found = []
        for name, shard in self.shards.items():
            for number, (_, schema) in enumerate(shard.structures):
                inside = [one for one in shard.written[number] if begin <= one.position < end]
                if inside:
                    ops, seqs = frozenset(OPS[one.act] for one in inside), [one.position.seq for one in inside]
                    version = replace(schema, schema=name[0]).version
                    found.append(Rows(name, version, ops, first=min(seqs), last=max(seqs)))
        return Survey(begin, end, found, [], [one for one in self.statements if begin <= one.position < end])

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
        shard, plan = self.shards[wanted.plan.source], wanted.plan
        schemas = [schema for _, schema in shard.structures]
        number = next(n for n, schema in enumerate(schemas) if schema.columns == plan.schema.columns)
        same = [n for n, schema in enumerate(schemas) if schema.version == schemas[number].version]
        rows = [one for n in same for one in shard.written[n] if part.begin <= one.position < part.end]
        rows.sort(key=lambda one: one.position)
        seq, count = np.array([one.position.seq for one in rows], np.int64), len(rows)

        def text(found: list[str | None]) -> object:
            return pa.array(found, TEXT)

        return Columns(
            acts=np.array([ACTS.index(one.act) for one in rows], np.int8),
            seq=seq,
            own=seq,
            row=np.zeros(count, np.int64),
            identity=text([str(one.key) for one in rows]),
            was=pa.nulls(count, TEXT),
            values=text([None if one.act is Act.DELETE else _tuple(one.values) for one in rows]),
            sets=None,
            new=(text([f"{one.key}.{plan.shape.table}" for one in rows]),),
            old=(pa.nulls(count, TEXT),),
        )


def _tuple(values: tuple[object, ...]) -> str:
    return f"({','.join('NULL' if value is None else str(value) for value in values)})"


@dataclass(frozen=True, slots=True)
class MemoryReader(SliceReader):
    """Reads slices of a `MemoryLog`."""

    def _read(self, wanted: Rendering, part: Slice) -> TableChanges:
        past = Past(part.begin.epoch, self.executed, self.points.get(wanted.plan.source))
        return left_over(wanted.plan, self.log.columns(wanted, part), past)  # type: ignore[attr-defined]


def open_memory_sink(log: MemoryLog, run: str, settings: SinkSettings, target: str, shards: Coordination) -> Sink:
    """A sink over a log whose shards all go to the table `t` of a database of the target."""
    rules = replace(NO_RULES, source_id=log.source_id, routes=Routes((replace(ROUTE, target_schema=target),)))
    source = SourceContext(Lakehouse(root="/nowhere"), "shards", log.source_id, run, "mysql", rules)
    looked_up = ShardLog(lambda name, position: log.shards[name].before(position), log.effects)
    expected = {name: shard.schema for name, shard in log.shards.items()}
    sides = SinkShards(log.source_id, rules, shards, 2, looked_up, expected)
    sides.register()
    sink = open_sink(None, source, settings, None, sides)  # type: ignore[arg-type]
    sink.reader = MemoryReader(
        None,  # type: ignore[arg-type]
        log,  # type: ignore[arg-type]
        sink.tables,
        source,
        settings=settings,
        executed=sink.executed,
        points=sink.reader.points,
        held=sink.held,
    )
    return sink


def union_of(server: Server, database: str, logs: list[MemoryLog]) -> list[str]:
    """How a table of the target differs from the union of its shards."""
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
