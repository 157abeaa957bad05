"""Retention of bronze: removes row changes by whole days, and records in bronze what was removed.

Bronze is partitioned by the day on which a batch landed, so a day's files are removed without being read. Structures,
statements and watermarks are kept indefinitely: they are small, and needed to read later rows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from pyspark.sql import SparkSession

from dmdelta.changelog.context import SourceContext
from dmdelta.changelog.ranges import IS_CHANGE, not_before, of_source
from dmdelta.changelog.xa import AT, position_of
from dmdelta.errors import QualityError
from dmdelta.lakehouse.access.table_writers import spark_writes
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.lakehouse.tables import properties_of, table_state
from dmdelta.model.position import Position
from dmdelta.model.spark_sql import literal

KEPT_SINCE = "dmdelta.kept-since"
"""Property of bronze: row changes that landed before this day may have been removed. Set before the first removal."""
EXPIRED_TO = "dmdelta.expired-to."
"""Prefix of a property per source id: the position of the source's last event that landed before that day."""
_APPEND_ONLY = "delta.appendOnly"


@dataclass(frozen=True, slots=True)
class Expired:
    """The removed rows, all of which had landed before a day."""

    before: date
    rows: int


def plan_expiry(today: date, days: int, needed: Iterable[date]) -> date:
    """The day before which everything may be removed: `days` ago, or the earliest day that is still needed."""
    return min([today - timedelta(days=days), *needed])


def plan_marks(recorded: Mapping[str, str], before: date, ends: Mapping[str, Position]) -> dict[str, str]:
    """The properties that record the removal of what landed before a day. None moves backwards: a retention that became
    longer does not bring back the rows that are gone.

    Args:
        recorded: bronze's properties.
        ends: the position of each source's last event that landed before the day.
    """
    marks = {KEPT_SINCE: max(before.isoformat(), recorded.get(KEPT_SINCE, ""))}
    for source_id, end in ends.items():
        name = f"{EXPIRED_TO}{source_id}"
        marks[name] = str(max(end, Position.parse(recorded.get(name, str(end)))))
    return marks


def first_day_needed(spark: SparkSession, bronze: str, source_id: str, position: Position) -> date | None:
    """The day on which the first row at or after a position landed; None if there is none yet.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    query = f"SELECT min(landed_on) AS day FROM {bronze} WHERE {of_source(source_id)} AND {not_before(position)}"
    with wrapped(bronze, "reading"):
        (row,) = spark.sql(query).collect()
    day: date | None = row["day"]
    return day


def expire(spark: SparkSession, bronze: str, before: date) -> Expired | None:
    """Remove the row changes that landed before a day; None if there were none.

    Those of prepared XA transactions that had not ended by then are kept. Safe to repeat after a kill.

    Raises:
        CommitConflict: bronze's properties were changed concurrently.
        LakehouseError: bronze cannot be read or written.
    """
    old = f"landed_on < DATE'{before}' AND {IS_CHANGE}"
    with wrapped(bronze, "removing old rows of"), spark_writes(bronze):
        kept = _unfinished(spark, bronze, before)
        gone = f"{old} AND (xid IS NULL OR NOT ({kept}))" if kept else old
        if spark.sql(f"SELECT 1 FROM {bronze} WHERE {gone} LIMIT 1").isEmpty():
            _set(spark, bronze, {_APPEND_ONLY: "true"})
            return None
        marks = plan_marks(properties_of(spark, bronze), before, _ends(spark, bronze, before))
        _set(spark, bronze, {_APPEND_ONLY: "false", **marks})
        (row,) = spark.sql(f"DELETE FROM {bronze} WHERE {gone}").collect()
        _set(spark, bronze, {_APPEND_ONLY: "true"})
    return Expired(before, row["num_affected_rows"])


def _ends(spark: SparkSession, bronze: str, before: date) -> dict[str, Position]:
    """The position of each source's last event that landed before a day."""
    rows = spark.sql(
        f"""SELECT source_id, max(struct(epoch, seq, {AT} AS at)) AS last FROM {bronze}
        WHERE landed_on < DATE'{before}' AND epoch > 0 GROUP BY source_id"""
    ).collect()
    return {row["source_id"]: position_of(row["last"]["at"]) for row in rows}


def _unfinished(spark: SparkSession, bronze: str, before: date) -> str:
    """The rows of XA transactions that had not ended before a day, as SQL; '' if there are none."""
    rows = spark.sql(
        f"""SELECT source_id, xid, max(struct(epoch, seq)) FILTER (WHERE {IS_CHANGE}) AS changed,
            max(struct(epoch, seq)) FILTER (WHERE op IN ('xa_commit', 'xa_rollback')) AS ended FROM {bronze}
        WHERE xid IS NOT NULL AND landed_on < DATE'{before}' GROUP BY source_id, xid
        HAVING changed IS NOT NULL AND (ended IS NULL OR changed > ended)"""
    ).collect()
    return " OR ".join(f"({of_source(row['source_id'])} AND xid = {literal(row['xid'])})" for row in rows)


def _set(spark: SparkSession, bronze: str, properties: dict[str, str]) -> None:
    """Set properties that differ: each time costs a commit, which conflicts with appends."""
    state = table_state(spark, bronze)
    existing = state.properties if state is not None else {}
    if any(existing.get(name) != value for name, value in properties.items()):
        listed = ", ".join(f"{literal(name)} = {literal(value)}" for name, value in properties.items())
        spark.sql(f"ALTER TABLE {bronze} SET TBLPROPERTIES ({listed})").collect()


def expired_to(spark: SparkSession, source: SourceContext) -> Position | None:
    """The last event of a source's log up to which row changes may have been removed; None: everything that landed is
    present.

    Raises:
        LakehouseError: bronze cannot be accessed.
    """
    text = properties_of(spark, source.bronze).get(f"{EXPIRED_TO}{source.source_id}")
    return Position.parse(text) if text is not None else None


def is_forgotten(spark: SparkSession, source: SourceContext, epoch: int) -> bool:
    """Whether rows of an epoch may have been removed: some of its remaining rows landed before the removal's day.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    since = properties_of(spark, source.bronze).get(KEPT_SINCE)
    if since is None:
        return False
    old = f"{of_source(source.source_id)} AND epoch = {epoch} AND landed_on < DATE'{since}'"
    with wrapped(source.bronze, "reading"):
        return not spark.sql(f"SELECT 1 FROM {source.bronze} WHERE {old} LIMIT 1").isEmpty()


def assert_kept(spark: SparkSession, source: SourceContext, begin: Position) -> None:
    """Check that bronze has all row changes after a position.

    Raises:
        QualityError: row changes after `begin` have been removed from bronze.
        LakehouseError: bronze cannot be read.
    """
    expired = expired_to(spark, source)
    if expired is not None and begin <= expired:
        raise forgotten(source.source_id, expired)


def forgotten(source_id: str, expired: Position) -> QualityError:
    """The error for an operation that needs more of a source's log than bronze has kept."""
    return QualityError(
        f"row changes of {source_id} up to {expired} have expired from bronze",
        hint="start after that position, or reload the tables: dmdelta snapshot SPEC --table SCHEMA.TABLE",
    )
