"""The sink in the test's own Spark session: bronze from recorded binlogs, a real server as target, a full diff."""

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.bronze.progress import newest_landed
from dmdelta.changelog.context import SourceContext
from dmdelta.failpoint import CrashPoint
from dmdelta.model.position import Position
from dmdelta.model.type_names import INTEGERS
from dmdelta.quality.json_compare import parse_document
from dmdelta.rules import NO_RULES, BlockAllowList, SourceRules
from dmdelta.sink.metrics import SinkMetrics
from dmdelta.sink.plan.safe_mode import SafeMode
from dmdelta.sink.read.slices import Cut
from dmdelta.sink.settings import SinkSettings
from dmdelta.sink.startup import open_sink
from dmdelta.sink.target.connection import TargetServer
from tests.support.pipeline import TASK, Pipeline
from tests.support.recording import record
from tests.support.servers import Server
from tests.support.servers.tidb import TidbServer
from tests.support.values import SourceColumn, quoted, source_columns

SOURCE = "s1"


class Hang:
    """Replaces `reach`: the thread that passes a point hangs until it is released."""

    def __init__(self, point: CrashPoint) -> None:
        self.point = point
        self.passed, self.released = threading.Event(), threading.Event()

    def __call__(self, point: CrashPoint) -> None:
        if point is self.point:
            self.passed.set()
            assert self.released.wait(60)


def target_of(server: Server | TidbServer) -> TargetServer:
    """The sink's settings for a test server: an account with all privileges."""
    if server.flavor == "tidb":
        return TargetServer(server.host, server.port, "root", "", tidb=True)
    server.execute(
        f"CREATE USER IF NOT EXISTS 'sink'@'%' IDENTIFIED BY '{server.password}'", "GRANT ALL ON *.* TO 'sink'@'%'"
    )
    return TargetServer(server.host, server.port, "sink", server.password)


def sink_section(target: Server | TidbServer, metadata: str) -> dict[str, object]:
    """The `sink` section of a spec for a test server as target; `metadata` is the schema of the sink's tables."""
    server = target_of(target)
    kind = "tidb" if server.tidb else "mysql"
    section = {"kind": kind, "host": server.host, "port": server.port, "user": server.user}
    return {**section, "password": server.password, "worker-count": 4, "metadata": metadata}


@dataclass(frozen=True)
class Ended:
    """How a run ended: whether it reached bronze's end, and its safe mode."""

    finished: bool
    metrics: SinkMetrics
    safe: SafeMode


@dataclass
class Sinking:
    """One source's log and its sink.

    Attributes:
        settings: of the sinks that are opened from now on.
        bucket: bytes of the log in a slice; None: the default.
    """

    spark: SparkSession
    folder: Path
    source: Server
    databases: list[str]
    settings: SinkSettings
    rules: SourceRules = NO_RULES
    bucket: int | None = None
    runs: int = 0
    pipeline: Pipeline = field(init=False)

    def __post_init__(self) -> None:
        self.pipeline = Pipeline(self.spark, self.folder / "lake")
        allowed = BlockAllowList(do_dbs=tuple(self.databases))
        self.rules = replace(self.rules, source_id=SOURCE, allow_list=allowed)

    def land(self) -> None:
        """Land the source's log in bronze."""
        archive = record(self.source, self.folder / "archive")
        self.pipeline.catch_up(archive, SOURCE, self.databases, self.source.flavor, apply_to=())

    def bounds(self) -> tuple[Position, Position]:
        """The positions where bronze begins and ends."""
        landing = SourceContext(self.pipeline.lakehouse, TASK, SOURCE, "test", self.source.flavor, self.rules)
        landed = newest_landed(self.spark, landing)
        assert landed is not None
        return replace(landed.end, offset=4, binlog_file="binlog.000001"), landed.end

    def transactions(self, begin: Position, end: Position, every: int) -> list[Cut]:
        """The start of every `every`-th transaction."""
        rows = self.pipeline.bronze(SOURCE).where(f"seq >= {begin.seq} AND seq < {end.seq} AND gtid IS NOT NULL")
        firsts = sorted(
            (row["at"]["seq"], row["at"]["binlog_file"], row["at"]["binlog_pos"])
            for row in rows.selectExpr("gtid", "struct(seq, binlog_file, binlog_pos) AS at")
            .groupBy("gtid")
            .agg(F.min("at").alias("at"))
            .collect()
        )
        return [Cut(Position(end.epoch, file, offset), True) for _, file, offset in firsts[::every]]

    def run(self, *, slices: int | None = None) -> Ended:
        """Open a sink, execute all of bronze, or this many slices of it, and end it."""
        self.runs += 1
        begin, end = self.bounds()
        rules = replace(self.rules)
        source = SourceContext(self.pipeline.lakehouse, TASK, SOURCE, f"run-{self.runs}", self.source.flavor, rules)
        sink = open_sink(self.spark, source, self.settings, end)
        if self.bucket is not None:
            sink.reader.log.bucket = self.bucket
        boundaries = count(1)
        try:
            finished = sink.apply(begin, end, lambda: slices is not None and next(boundaries) >= slices)
        except BaseException:
            sink.end(orderly=False)
            raise
        metrics = sink.metrics()
        assert sink.end(orderly=True)
        return Ended(finished, metrics, sink.caution.safe)


def table_differences(source: Server, target: Server, database: str, table: str) -> list[str]:
    """The differences between the same table on two servers, by the text and bytes of every value."""
    columns, _ = source_columns(source, database, table)
    rows = [rows_of_table(server, database, table, columns) for server in (source, target)]
    missing = [f"{table} missing: {row}" for row in sorted(rows[0] - rows[1], key=str)]
    more = [f"{table} too much: {row}" for row in sorted(rows[1] - rows[0], key=str)]
    return missing + more


def union_differences(
    shards: Sequence[tuple[Server, str, str]], target: Server, database: str, table: str, *, counted: bool = True
) -> list[str]:
    """Rows of shards that are missing in the target's merged table, by each shard's own columns, and a wrong row count.

    Args:
        shards: the server, database and table of each.
        counted: check that the target has no other rows.
    """
    found, total = list[str](), 0
    for server, schema, name in shards:
        columns, _ = source_columns(server, schema, name)
        expected = rows_of_table(server, schema, name, columns)
        lacks = expected - rows_of_table(target, database, table, columns)
        found += [f"{schema}.{name} missing: {row}" for row in sorted(lacks, key=str)]
        total += expected.total()
    ((count,),) = target.query(f"SELECT COUNT(*) FROM {quoted(table)}", database)
    return found if not counted or count == total else [*found, f"{database}.{table}: {count} rows instead of {total}"]


def rows_of_table(
    server: Server, database: str, table: str, columns: Sequence[SourceColumn]
) -> "Counter[tuple[object, ...]]":
    """The rows of a table, by the text and bytes of every value."""
    chosen = ", ".join(_selected(column) for column in columns)
    json_at = [number for number, column in enumerate(columns) if column.type == "json"]
    with (
        server.connect(database=database, init_command="SET time_zone = '+00:00'") as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(f"SELECT {chosen} FROM {quoted(table)}")
        return Counter(tuple(_plain(row, json_at)) for row in cursor.fetchall())


def _plain(row: Sequence[Any], json_at: list[int]) -> Iterator[object]:
    """Normalize documents: servers differ in the order of keys, the notation of numbers, and spaces."""
    for number, value in enumerate(row):
        parsed = number in json_at and value is not None
        yield repr(_canonical(parse_document(value))) if parsed else value


def _canonical(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _canonical(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_canonical(one) for one in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value


def _selected(column: SourceColumn) -> str:
    name = quoted(column.name)
    if column.type in {"float", "double"}:
        return f"{name} * 1e0"
    if column.type == "bit":
        return f"{name} + 0"
    if column.type in {"char", "varchar", "text", "tinytext", "mediumtext", "longtext", "enum", "set"}:
        return f"HEX(CONVERT({name} USING utf8mb4))"
    if column.type in INTEGERS:
        return name  # not as text: only MySQL pads ZEROFILL columns
    if column.type in {"date", "datetime", "timestamp", "time", "decimal", "year", "json"}:
        return f"CAST({name} AS CHAR)"
    return f"HEX({name})"
