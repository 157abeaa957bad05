"""How long a kind of table keeps its history and the files that are no longer part of it, and how often it is vacuumed.

Every commit and every opening of a table lists its whole log, so a log of days costs more than the commits themselves.
Delta keeps 30 days of it. Under a local root maintenance removes what is older than `Retention.log`
(`dmdelta.lakehouse.access.log_cleanup`), unless the table's property says otherwise.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from pyspark.sql import SparkSession

from dmdelta.lakehouse.access.local_root import local_table
from dmdelta.lakehouse.access.log_cleanup import LOG_RETENTION
from dmdelta.lakehouse.tables import properties_of

FILE_RETENTION = "delta.deletedFileRetentionDuration"
_PART = re.compile(r"(\d+)\s+(week|day|hour|minute|second|millisecond|microsecond)s?", re.IGNORECASE)
_INTERVAL = re.compile(rf"(?:interval\s+)?{_PART.pattern}(?:\s+{_PART.pattern})*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Retention:
    """The retention of a table.

    VACUUM takes the names of old files from the log, so the log goes back to before what the last VACUUM removed:
    `log` is at least `files` and `vacuum` together.

    Attributes:
        log: how long a commit stays in the history.
        files: how long a file remains after it has been replaced, for queries that have started and for time travel.
        vacuum: the shortest time between two removals of such files.
    """

    log: timedelta
    files: timedelta
    vacuum: timedelta

    @property
    def properties(self) -> dict[str, str]:
        """The properties of a new table. Delta checks `files` itself, and each checkpoint lists the files."""
        return {} if self.files == DELTA.files else {FILE_RETENTION: f"interval {self.files // _MINUTE} minutes"}

    def changed_by(self, properties: Mapping[str, str]) -> "Retention":
        """The retention of a table with these properties."""
        log = _interval(properties.get(LOG_RETENTION), self.log)
        kept = replace(self, log=log, files=_interval(properties.get(FILE_RETENTION), DELTA.files))
        return replace(kept, vacuum=max(kept.vacuum, DELTA.vacuum)) if kept.files >= DELTA.files else kept


_MINUTE, _CENTURY = timedelta(minutes=1), timedelta(days=36_525)
DELTA = Retention(log=timedelta(days=30), files=timedelta(days=7), vacuum=timedelta(days=1))
"""Delta's defaults."""
FREQUENT = Retention(log=timedelta(hours=3), files=timedelta(minutes=90), vacuum=timedelta(hours=1))
"""Bronze, which gets a commit a second, and dm_meta. Nothing reads their older versions."""
SILVER = Retention(log=timedelta(hours=12), files=timedelta(hours=8), vacuum=timedelta(hours=3))
"""Silver, of which live reads read older versions; a busy table gets a commit every ten seconds."""


def silver_retention(spark: SparkSession, table: str) -> Retention:
    """The retention of a silver table, by its SQL identifier.

    In a catalog or an object store it is Delta's: live views pin versions, and Delta refuses to read a version that is
    older than `files`, even if it was replaced a moment ago. dmdelta's own sessions turn that check off.
    """
    return DELTA if local_table(spark, table) is None else SILVER


def files_kept(spark: SparkSession, table: str) -> timedelta:
    """How long the files of a table remain after they have been replaced.

    Raises:
        LakehouseError: the table cannot be read.
    """
    return DELTA.changed_by(properties_of(spark, table)).files


def _interval(text: str | None, default: timedelta) -> timedelta:
    """A property's value, as in `interval 12 hours`. One of another form lasts indefinitely."""
    if text is None:
        return default
    if _INTERVAL.fullmatch(text.strip()) is None:
        return _CENTURY
    parts = [(f"{unit.lower()}s", int(number)) for number, unit in _PART.findall(text)]
    return sum((timedelta(**{unit: number}) for unit, number in parts), timedelta(0))
