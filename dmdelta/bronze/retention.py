"""How long bronze is kept: the row changes of whole days go, and what is left of bronze says so itself.

The day on which a batch landed partitions bronze, so a day's files go without being read. What tells structures,
statements and watermarks stays for ever: it is little, and later rows are read by it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

from pyspark.sql import SparkSession

from dmdelta.bronze.landing import LandingSource
from dmdelta.changelog.ranges import IS_CHANGE, not_before, of_source
from dmdelta.changelog.xa import AT, position_of
from dmdelta.errors import QualityError
from dmdelta.lakehouse.foreign import wrapped
from dmdelta.lakehouse.tables import table_state
from dmdelta.model.position import Position
from dmdelta.model.spark_sql import literal

KEPT_SINCE = "dmdelta.kept-since"
"""Property of bronze: row changes that landed before this day may be gone. Set before the first of them goes."""
EXPIRED_TO = "dmdelta.expired-to."
"""Likewise, with a source's id behind it: where the last event of its log is that landed before that day."""
_APPEND_ONLY = "delta.appendOnly"


@dataclass(frozen=True, slots=True)
class Expired:
    """Rows that went, all those that had landed before a day."""

    before: date
    rows: int


def plan_expiry(today: date, days: int, needed: Iterable[date]) -> date:
    """The day before which all may go: so many days back, or the first day of which something is still needed."""
    return min([today - timedelta(days=days), *needed])


def first_day_needed(spark: SparkSession, bronze: str, source_id: str, position: Position) -> date | None:
    """When the first row landed that is not before a position; None if there is none yet.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    query = f"SELECT min(landed_on) AS day FROM {bronze} WHERE {of_source(source_id)} AND {not_before(position)}"
    with wrapped(bronze, "reading"):
        (row,) = spark.sql(query).collect()
    day: date | None = row["day"]
    return day


def expire(spark: SparkSession, bronze: str, before: date) -> Expired | None:
    """Have the row changes go that landed before a day; None if there were none.

    Those of XA transactions that are prepared and had not ended by then stay. Whoever was killed here goes on here.

    Raises:
        CommitConflict: somebody else changes bronze's properties. LakehouseError: bronze cannot be read or written.
    """
    old = f"landed_on < DATE'{before}' AND {IS_CHANGE}"
    with wrapped(bronze, "removing old rows of"):
        kept = _unfinished(spark, bronze, before)
        gone = f"{old} AND (xid IS NULL OR NOT ({kept}))" if kept else old
        if spark.sql(f"SELECT 1 FROM {bronze} WHERE {gone} LIMIT 1").isEmpty():
            _set(spark, bronze, {_APPEND_ONLY: "true"})
            return None
        ends = {f"{EXPIRED_TO}{source_id}": str(end) for source_id, end in _ends(spark, bronze, before)}
        _set(spark, bronze, {_APPEND_ONLY: "false", KEPT_SINCE: before.isoformat(), **ends})
        (row,) = spark.sql(f"DELETE FROM {bronze} WHERE {gone}").collect()
        _set(spark, bronze, {_APPEND_ONLY: "true"})
    return Expired(before, row["num_affected_rows"])


def _ends(spark: SparkSession, bronze: str, before: date) -> list[tuple[str, Position]]:
    """Where the last event of each source's log is that landed before a day."""
    rows = spark.sql(
        f"""SELECT source_id, max(struct(epoch, seq, {AT} AS at)) AS last FROM {bronze}
        WHERE landed_on < DATE'{before}' AND epoch > 0 GROUP BY source_id"""
    ).collect()
    return [(row["source_id"], position_of(row["last"]["at"])) for row in rows]


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
    """Set what is not so already: each time costs a commit, which no append may meet."""
    state = table_state(spark, bronze)
    there = state.properties if state is not None else {}
    if any(there.get(name) != value for name, value in properties.items()):
        listed = ", ".join(f"{literal(name)} = {literal(value)}" for name, value in properties.items())
        spark.sql(f"ALTER TABLE {bronze} SET TBLPROPERTIES ({listed})").collect()


def expired_to(spark: SparkSession, source: LandingSource) -> Position | None:
    """The last event of a source's log up to which row changes may be gone; None: all that ever landed is there.

    Raises:
        LakehouseError: bronze cannot be looked at.
    """
    text = _property(spark, source.bronze, f"{EXPIRED_TO}{source.source_id}")
    return Position.parse(text) if text is not None else None


def _property(spark: SparkSession, bronze: str, name: str) -> str | None:
    state = table_state(spark, bronze)
    return state.properties.get(name) if state is not None else None


def is_forgotten(spark: SparkSession, source: LandingSource, epoch: int) -> bool:
    """Rows of an epoch may be gone: some of what has stayed of it landed before the others went.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    since = _property(spark, source.bronze, KEPT_SINCE)
    if since is None:
        return False
    old = f"{of_source(source.source_id)} AND epoch = {epoch} AND landed_on < DATE'{since}'"
    with wrapped(source.bronze, "reading"):
        return not spark.sql(f"SELECT 1 FROM {source.bronze} WHERE {old} LIMIT 1").isEmpty()


def assert_kept(spark: SparkSession, source: LandingSource, begin: Position) -> None:
    """
    Raises:
        QualityError: row changes behind `begin` are gone from bronze.
        LakehouseError: bronze cannot be read.
    """
    expired = expired_to(spark, source)
    if expired is not None and begin <= expired:
        raise forgotten(source.source_id, expired)


def forgotten(source_id: str, expired: Position) -> QualityError:
    """The error of whoever needs more of a source's log than bronze has kept."""
    return QualityError(
        f"row changes of {source_id} up to {expired} have expired from bronze",
        hint="begin behind that, or have the tables read again: dmdelta snapshot SPEC --table SCHEMA.TABLE",
    )
