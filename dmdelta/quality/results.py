"""The table `dm_meta.<task>_quality`: what judging rows has found, one row an expectation."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812 - Spark's convention

from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.metadata_table import create_metadata, metadata_frame
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName

COLUMNS: dict[str, T.DataType] = {
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
}
SAMPLES = 20
"""Keys of failing rows that a result shows."""


class Scope(str, Enum):
    """Which rows were judged."""

    RUN = "run"
    """Those that a running task applied: results are there for what fails alone."""
    RANGE = "range"
    """The rows of silver that a range of the log touched, as they were at its end."""
    TABLE = "table"
    """All rows of silver."""
    REPLAY = "replay"
    """The rows that a range of the log touched, as a replay from bronze leaves them at its end."""
    REPLAY_CHECK = "replay-check"
    """The result of `dmdelta replay --check`, ahead of silver."""
    IMAGES = "images"
    """The rows that a range of the log wrote, each time it did: bronze's images."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Which rows were judged by what.

    Attributes:
        begin, end: the range of the log; of a whole table, `end` alone: where it is.
    """

    source: str
    table: TableName
    scope: Scope
    begin: Position | None
    end: Position


@dataclass(frozen=True, slots=True)
class Result:
    """What was found by one expectation.

    Attributes:
        evaluated, unexpected: rows judged, and rows that fail; None where it is not about rows, or was not told.
        samples: keys of some rows that fail.
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
    """What Great Expectations says about judged rows, for its Data Docs.

    Attributes:
        suite: its name: the table's.
        range: of the log, as text; of a whole table, where it is.
        told: Great Expectations' ExpectationSuiteValidationResult.
    """

    suite: str
    scope: Scope
    range: str
    told: Any


@dataclass(slots=True)
class ResultStore:
    """The table. Has a session of its own; any thread may add to it."""

    spark: SparkSession
    lakehouse: Lakehouse
    task: str
    run: str
    _there: bool = False

    def add(self, judged: Judged, results: Sequence[Result]) -> None:
        """
        Raises:
            LakehouseError: it cannot be written.
        """
        table = results_table(self.lakehouse, self.task)
        if not self._there:
            create_metadata(self.spark, self.lakehouse, table, COLUMNS, self.task)
            self._there = True
        common = {
            "run": self.run,
            "at": datetime.now(timezone.utc),
            "source": judged.source,
            "table_schema": judged.table[0],
            "table_name": judged.table[1],
            "scope": judged.scope.value,
            "begin_position": str(judged.begin) if judged.begin is not None else None,
            "end_position": str(judged.end),
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
        with wrapped(table, "appending to"):
            metadata_frame(self.spark, COLUMNS, rows).writeTo(table).append()


def plain(value: object) -> object:
    """A value of a key as JSON knows it."""
    return value if isinstance(value, (int, str)) or value is None else str(value)


def results_table(lakehouse: Lakehouse, task: str) -> str:
    """The SQL identifier of a task's results."""
    return lakehouse.metadata(f"{task}_quality")
