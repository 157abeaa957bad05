"""What the history of a table says about our own commits."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from pyspark.sql import Row, SparkSession

from dmdelta.lakehouse.changes import Change
from dmdelta.lakehouse.foreign import is_absent, wrapped
from dmdelta.model.position import Position

_PAGES = (1, 20, 500)


@dataclass(frozen=True, slots=True)
class CommitTag:
    """What a commit stands for: kept as its `userMetadata` and as its Delta transaction (`app`, `version`).

    Attributes:
        app: the transaction's application id: one writer of one table.
        version: grows with every commit of `app` and stands for one fixed range.
        run: id of the process's run, to tell two runners of a task apart.
        begin: where the range begins.
        end: where the table is after the commit: the next range begins here.
        gtid_set: every transaction up to `end`, None where nobody needs it.
        safe_until: what follows may have been applied before, up to there; None: nothing.
        rest: of the statement at `end`, what is still to be done to the table; None: it has not begun.
        again: says once more where the table is, because the table's history forgets its commits in time.
    """

    app: str
    version: int
    task: str
    source: str
    run: str
    begin: Position
    end: Position
    gtid_set: str | None = None
    safe_until: Position | None = None
    rest: tuple[Change, ...] | None = None
    again: bool = False

    def to_json(self) -> str:
        return json.dumps(
            {
                "dmdelta": 1,
                "app": self.app,
                "version": self.version,
                "task": self.task,
                "source": self.source,
                "run": self.run,
                "from": self.begin.to_dict(),
                "to": self.end.to_dict(),
                "gtid_set": self.gtid_set,
                **({"safe_until": self.safe_until.to_dict()} if self.safe_until else {}),
                **({"rest": [change.to_pair() for change in self.rest]} if self.rest is not None else {}),
                **({"again": True} if self.again else {}),
            }
        )

    @classmethod
    def from_json(cls, text: str | None) -> "CommitTag | None":
        """The tag, or None if the text is not of ours."""
        try:
            fields: Any = json.loads(text or "")
        except ValueError:
            return None
        if not isinstance(fields, dict) or fields.get("dmdelta") != 1:
            return None
        return cls(
            app=fields["app"],
            version=fields["version"],
            task=fields["task"],
            source=fields["source"],
            run=fields["run"],
            begin=Position.from_dict(fields["from"]),
            end=Position.from_dict(fields["to"]),
            gtid_set=fields["gtid_set"],
            safe_until=Position.from_dict(fields["safe_until"]) if "safe_until" in fields else None,
            rest=tuple(map(Change.from_pair, fields["rest"])) if "rest" in fields else None,
            again=fields.get("again", False),
        )


@dataclass(frozen=True, slots=True)
class OwnCommit:
    """A commit of ours: the Delta version of the table, what it stands for, and when it was made, in UTC."""

    version: int
    tag: CommitTag
    at: datetime


@dataclass(frozen=True, slots=True)
class TimedCommit:
    """A commit of ours and when it was made, in UTC."""

    at: datetime
    tag: CommitTag


def newest_own_commit(spark: SparkSession, table: str, app: str) -> OwnCommit | None:
    """The newest commit of `app` in the table's history, behind OPTIMIZE, VACUUM and other tools' commits.

    None if the table is not there or its kept history has none.

    Raises:
        LakehouseError: the table cannot be read.
    """
    return next(own_commits(spark, table, app), None)


def own_commits(spark: SparkSession, table: str, app: str | None) -> Iterator[OwnCommit]:
    """The commits of `app` that the table's history still has, newest first, read as far back as they are asked for.

    Args:
        app: None for those of every application of ours.

    Raises:
        LakehouseError: the table cannot be read.
    """
    oldest: int | None = None
    for limit in (*_PAGES, None):
        rows = _history(spark, table, limit)
        for version, text, at in rows:
            if oldest is not None and version >= oldest:
                continue  # of a page before
            oldest = version
            tag = CommitTag.from_json(text)
            if tag is not None and app in (tag.app, None):
                yield OwnCommit(version, tag, at)
        if limit is None or len(rows) < limit or oldest == 0:
            return


def newest_commits(spark: SparkSession, table: str, app: str) -> tuple[int | None, OwnCommit | None]:
    """The table's newest Delta version, whoever made it (None if the table is not there), and the newest of `app`.

    Raises:
        LakehouseError: the table cannot be read.
    """
    rows = _history(spark, table, _PAGES[1])
    found = ((version, CommitTag.from_json(text), at) for version, text, at in rows)
    own = next((OwnCommit(version, tag, at) for version, tag, at in found if tag is not None and tag.app == app), None)
    if own is None and len(rows) == _PAGES[1]:
        own = newest_own_commit(spark, table, app)
    return rows[0][0] if rows else None, own


def timed_commits(spark: SparkSession, table: str, span: timedelta, most: int) -> tuple[list[TimedCommit], bool]:
    """The commits of ours of the last `span` of a table's history, newest first, and whether all of them were read.

    The span ends at the table's newest commit, whoever made it. None if the table is not there.

    Args:
        most: so many of the table's commits are read at the most.

    Raises:
        LakehouseError: the table cannot be read.
    """
    for limit in (_PAGES[-1], most):
        rows = _rows(spark, table, limit)
        moments = [row["timestamp"].astimezone(timezone.utc) for row in rows]
        whole = len(rows) < limit or moments[-1] < moments[0] - span
        if whole:
            break
    timed = ((at, CommitTag.from_json(row["userMetadata"])) for at, row in zip(moments, rows, strict=True))
    return [TimedCommit(at, tag) for at, tag in timed if tag is not None and at >= moments[0] - span], whole


def _history(spark: SparkSession, table: str, limit: int | None) -> list[tuple[int, str | None, datetime]]:
    """(version, userMetadata, UTC) of the newest `limit` commits, newest first; none if the table is not there."""
    rows = _rows(spark, table, limit)
    return [(row["version"], row["userMetadata"], row["timestamp"].astimezone(timezone.utc)) for row in rows]


def _rows(spark: SparkSession, table: str, limit: int | None) -> list[Row]:
    """Version, timestamp and userMetadata of the newest `limit` commits, newest first; none if there is no table."""
    query = f"DESCRIBE HISTORY {table}" + (f" LIMIT {limit}" if limit else "")
    with wrapped(table, "reading the history of"):
        try:
            return spark.sql(query).select("version", "timestamp", "userMetadata").collect()
        except Exception as error:
            if is_absent(error):
                return []
            raise
