"""The table `dm_meta.<task>_binlog_operators`: operator overrides for single statements.

Append-only; the newest row for a position is in effect, `revert` removes an override.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812 - Spark's convention

from dmdelta.engine.task.task import Task, named_source
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.metadata_table import MetadataRow, MetadataTable
from dmdelta.model.position import Position
from dmdelta.rules.operators import Operator, Verb

BINLOG_OPERATORS = MetadataTable(
    "binlog_operators",
    {
        "source_id": T.StringType(),
        "epoch": T.IntegerType(),
        "binlog_file": T.StringType(),
        "binlog_pos": T.LongType(),
        "operator": T.StringType(),
        "statements": T.ArrayType(T.StringType()),
        "at": T.TimestampType(),
    },
    keys=("source_id", "epoch", "binlog_file", "binlog_pos"),
    order="at",
)
REVERT = "revert"


@dataclass(frozen=True, slots=True)
class Decided:
    """An override in effect, as shown by `binlog list`."""

    source: str
    position: str
    operator: str
    statements: Sequence[str]
    at: datetime


def read_operators(spark: SparkSession, lakehouse: Lakehouse, task: str, source_id: str) -> Mapping[Position, Operator]:
    """The overrides in effect for a source's log.

    Raises:
        LakehouseError: the table cannot be read.
    """
    rows = [row for row in _newest(spark, lakehouse, task) if row["source_id"] == source_id]
    return {_position(row): Operator(Verb(row["operator"]), tuple(row["statements"] or ())) for row in rows}


def list_operators(task: Task) -> list[Decided]:
    """All overrides in effect of a task.

    Raises:
        LakehouseError: the table cannot be read.
    """
    return [
        Decided(row["source_id"], str(_position(row)), row["operator"], row["statements"] or [], row["at"])
        for row in _newest(task.spark, task.lakehouse, task.spec.name)
    ]


def decide(
    task: Task, source_id: str | None, position: Position, verb: Verb | None, statements: Sequence[str] = ()
) -> Decided:
    """Record an override; a run reads it when it starts, resumes or reads the overrides again.

    Args:
        source_id: may be None for a task of one source.
        verb: None removes an override.

    Raises:
        ConfigError: the task has no such source, or several and none is named.
        LakehouseError: the override cannot be written.
    """
    source = named_source(task.spec, source_id).source_id
    operator = verb.value if verb else REVERT
    _append(task, (source, position, operator, list(statements)), now := datetime.now(timezone.utc))
    return Decided(source, str(position), operator, list(statements), now)


def _append(task: Task, decision: tuple[str, Position, str, list[str]], at: datetime) -> None:
    source, position, operator, statements = decision
    table = BINLOG_OPERATORS.of(task.spark, task.lakehouse, task.spec.name)
    table.create()
    row = {
        "source_id": source,
        "epoch": position.epoch,
        "binlog_file": position.binlog_file,
        "binlog_pos": position.offset,
        "operator": operator,
        "statements": statements,
        "at": at,
    }
    table.append([row])


def _newest(spark: SparkSession, lakehouse: Lakehouse, task: str) -> list[MetadataRow]:
    rows = BINLOG_OPERATORS.of(spark, lakehouse, task).newest()
    return sorted(
        (row for row in rows if row["operator"] != REVERT), key=lambda row: (row["source_id"], _position(row))
    )


def _position(row: MetadataRow) -> Position:
    return Position(row["epoch"], row["binlog_file"], row["binlog_pos"])
