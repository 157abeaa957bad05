"""Resolves places in a source's log in bronze: a position, a GTID, a time, or a landed batch."""

import re
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum

from pyspark.sql import Row, SparkSession

from dmdelta.bronze.progress import landing_app
from dmdelta.bronze.retention import expired_to, forgotten
from dmdelta.changelog.context import SourceContext
from dmdelta.changelog.ranges import of_source
from dmdelta.changelog.xa import AT, position_of
from dmdelta.errors import ConfigError
from dmdelta.lakehouse.history import own_commits
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.position import Position
from dmdelta.model.spark_sql import literal

_FILE = re.compile(r"([^/:]+\.\d+):(\d+)")
_GTIDS = {
    "mysql": re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}:(?:[a-z_]\w*:)?\d+"),
    "mariadb": re.compile(r"\d+-\d+-\d+"),
}
_BATCH = re.compile(r"batch:(\d+)")
_IN_LOG = "op NOT IN ('read', 'schema', 'watermark')"


class Side(Enum):
    """Whether a place is the start or the end of a range."""

    FROM = "from"
    TO = "to"


@dataclass(frozen=True, slots=True)
class LandedPositions:
    """The log of a source in bronze, up to `end`."""

    spark: SparkSession
    source: SourceContext
    end: Position


def find_place(log: LandedPositions, text: str, side: Side) -> Position:
    """Resolve a place: of a transaction or a batch, its begin (FROM) or its end (TO); of a time, the first event since.

    Args:
        text: `binlog.000012:4711`, with an epoch as `2/binlog.000012:4711`; a GTID; an ISO 8601 time; `batch:17`.

    Raises:
        ConfigError: the text has another form, or bronze does not have the place.
        QualityError: the place may have expired from bronze.
        LakehouseError: bronze cannot be read.
    """
    if found := _BATCH.fullmatch(text):
        return _batch(log, int(found[1]), side)
    if found := _FILE.fullmatch(text):
        return _inside(log, Position(_epoch_of(log, found[1]), found[1], int(found[2])), text)
    if "/" in text:
        return _inside(log, Position.parse(text), text)
    if time_of(text) is None and _GTIDS[log.source.flavor].fullmatch(text):
        return _transaction(log, text, side)
    return _time(log, text, side)


def time_of(text: str) -> datetime | None:
    """A place that is an ISO 8601 time, without a time zone in UTC; None for any other place.

    A date is one, too: it has the form of a MariaDB GTID, but of a domain that no server has.
    """
    try:
        time = datetime.fromisoformat(f"{text[:-1]}+00:00" if text.endswith("Z") else text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


def _inside(log: LandedPositions, position: Position, text: str) -> Position:
    if position > log.end:
        raise ConfigError(f"{text} has not landed yet", hint=f"bronze ends at {log.end}: run the task first")
    return position


def _epoch_of(log: LandedPositions, file: str) -> int:
    if file == log.end.binlog_file:
        return log.end.epoch  # bronze may have no rows of it yet
    row = _one(log, f"SELECT max(epoch) AS epoch FROM {{bronze}} AND epoch > 0 AND binlog_file = {literal(file)}")
    if row["epoch"] is None:
        raise ConfigError(f"bronze has no changes of {file}", hint="`dmdelta events SPEC` shows the changes in bronze")
    return int(row["epoch"])


def _transaction(log: LandedPositions, gtid: str, side: Side) -> Position:
    row = _one(
        log,
        f"SELECT min(struct(epoch, seq, {AT} AS at)) AS first, max(struct(epoch, seq)) AS last FROM {{bronze}} "
        f"AND lower(gtid) = {literal(gtid.lower())}",
    )
    if row["first"] is None:
        raise ConfigError(f"bronze has no row of the transaction {gtid}", hint="use a position or a time")
    if side is Side.FROM:
        return position_of(row["first"]["at"])
    return _first(log, f"(epoch, seq) > ({row['last']['epoch']}, {row['last']['seq']})")


def _time(log: LandedPositions, text: str, side: Side) -> Position:
    time = time_of(text)
    if time is None:
        raise ConfigError(
            f"{text!r} is not a place in the log",
            hint="use binlog.000012:4711, a GTID, a time such as 2026-11-21T10:00:00Z, or batch:17",
        )
    found = _first(log, f"committed_at >= timestamp_micros({int(time.timestamp() * 1_000_000)})")
    expired = expired_to(log.spark, log.source) if side is Side.FROM else None
    if expired is not None and found <= _first(log, f"(epoch, seq) > ({expired.epoch}, {expired.seq})"):
        raise forgotten(log.source.source_id, expired)  # the first event of that time may have expired
    return found


def _first(log: LandedPositions, condition: str) -> Position:
    """The position of the first event in the log that meets a condition (SQL); bronze's end if there is none."""
    query = f"SELECT min(struct(epoch, seq, {AT} AS at)) AS first FROM {{bronze}} AND epoch > 0 AND {_IN_LOG}"
    row = _one(log, f"{query} AND {condition}")
    return position_of(row["first"]["at"]) if row["first"] is not None else log.end


def _batch(log: LandedPositions, number: int, side: Side) -> Position:
    for commit in own_commits(log.spark, log.source.bronze, landing_app(log.source.task, log.source.source_id)):
        if commit.tag.version == number:
            return commit.tag.begin if side is Side.FROM else commit.tag.end
    raise ConfigError(f"bronze's history has no batch {number}", hint="use a position or a time")


def _one(log: LandedPositions, query: str) -> Row:
    """The only row of a query; `{bronze}` in it includes a WHERE clause, which the query extends."""
    source = log.source
    with wrapped(source.bronze, "reading"):
        (row,) = log.spark.sql(query.format(bronze=f"{source.bronze} WHERE {of_source(source.source_id)}")).collect()
    return row
