"""The table `dm_meta.<task>_quality`: the results of evaluations, one row per expectation; old ones are removed."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from enum import Enum
from itertools import count
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812 - Spark's convention

from dmdelta.errors import CommitConflict
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.metadata_table import COMPACT_EVERY, MetadataTable, TaskMetadata
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName

log = get_logger(__name__)
QUALITY = MetadataTable(
    "quality",
    {
        "run": T.StringType(),
        "at": T.TimestampType(),
        "source": T.StringType(),
        "table_schema": T.StringType(),
        "table_name": T.StringType(),
        "scope": T.StringType(),
        "begin_position": T.StringType(),
        "end_position": T.StringType(),
        "expectation": T.StringType(),
        "on_failure": T.StringType(),
        "success": T.BooleanType(),
        "evaluated": T.LongType(),
        "unexpected": T.LongType(),
        "samples": T.ArrayType(T.StringType()),
        "note": T.StringType(),
    },
    keys=("source", "table_schema", "table_name", "expectation", "scope"),
    order="at",
)
SAMPLES = 20
"""Maximum number of failing rows whose keys a result shows."""
KEPT = timedelta(days=90)
"""How long results are kept: a run whose rows fail adds some with each turn."""


class Scope(str, Enum):
    """The rows that were evaluated."""

    RUN = "run"
    """Rows that a running task applied; only failing expectations have results."""
    RANGE = "range"
    """The rows of silver that a range of the log wrote, in their state at its end."""
    TABLE = "table"
    """All rows of silver."""
    REPLAY = "replay"
    """The rows that a range of the log wrote, in their state at its end, rebuilt by a replay from bronze."""
    REPLAY_CHECK = "replay-check"
    """The result of `dmdelta replay --check`, before it is written."""
    IMAGES = "images"
    """Every row image that a range of the log wrote, from bronze."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The table and the rows that were evaluated.

    Attributes:
        begin, end: the range of the log; for a whole table, `begin` is None and `end` is its position.
    """

    source: str
    table: TableName
    scope: Scope
    begin: Position | None
    end: Position


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one expectation.

    Attributes:
        evaluated, unexpected: number of evaluated and of failing rows; None if unknown, or not about rows.
        samples: keys of some failing rows.
    """

    expectation: str
    on_failure: str
    success: bool
    evaluated: int | None = None
    unexpected: int | None = None
    samples: tuple[Mapping[str, Any], ...] = ()
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Validation:
    """Great Expectations' result of an evaluation, for its Data Docs.

    Attributes:
        suite: the suite's name, which is the table's.
        range: the range of the log as text; for a whole table, its position.
        details: Great Expectations' ExpectationSuiteValidationResult.
    """

    suite: str
    scope: Scope
    range: str
    details: Any


@dataclass(slots=True)
class ResultStore:
    """Writes the table. Thread-safe."""

    spark: SparkSession
    lakehouse: Lakehouse
    task: str
    run: str
    _exists: bool = False
    _appends: Iterator[int] = field(default_factory=count)

    def add(self, subject: Subject, results: Sequence[Result]) -> None:
        """
        Raises:
            LakehouseError: it cannot be written.
        """
        table = QUALITY.of(self.spark, self.lakehouse, self.task)
        if not self._exists:
            table.create()
            self._exists = True
        common = {
            "run": self.run,
            "at": datetime.now(timezone.utc),
            "source": subject.source,
            "table_schema": subject.table[0],
            "table_name": subject.table[1],
            "scope": subject.scope.value,
            "begin_position": str(subject.begin) if subject.begin is not None else None,
            "end_position": str(subject.end),
        }
        rows = [
            {
                **common,
                "expectation": result.expectation,
                "on_failure": result.on_failure,
                "success": result.success,
                "evaluated": result.evaluated,
                "unexpected": result.unexpected,
                "samples": [json.dumps(sample, ensure_ascii=False) for sample in result.samples],
                "note": result.note,
            }
            for result in results
        ]
        table.append(rows)
        if next(self._appends) % COMPACT_EVERY == 0:
            _expire(table, datetime.now(timezone.utc) - KEPT)


def _expire(table: TaskMetadata, before: datetime) -> None:
    """Remove results that are older than a time.

    Raises:
        LakehouseError: the table cannot be written.
    """

    def is_old(literal: Callable[[str], str]) -> str:
        return f"at < {literal(before.isoformat())}"  # as text, which both implementations convert to UTC

    try:
        table.delete(is_old)
    except CommitConflict:
        # Another process writes the table. The next time is soon enough.
        log.info("old results not removed: another writer was faster", table=table.place)


def plain(value: object) -> object:
    """A key value as a JSON type."""
    return value if isinstance(value, (int, str)) or value is None else str(value)
