"""The task's own commits in the history of a table."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from pyspark.sql import Row, SparkSession

from dmdelta.lakehouse.changes import Change
from dmdelta.lakehouse.spark_errors import is_absent, wrapped
from dmdelta.model.position import Position

_PAGES = (1, 20, 500)


@dataclass(frozen=True, slots=True)
class CommitTag:
    """The identity of a commit: stored as its `userMetadata` and as its Delta transaction (`app`, `version`).

    Attributes:
        app: the transaction's application id: one writer of one table.
        version: increases with every commit of `app` and identifies one fixed range.
        run: id of the process's run, to distinguish two runners of a task.
        begin: the start of the range.
        end: the table's position after the commit: the next range starts here.
        gtid_set: every transaction up to `end`, None if not needed.
        safe_until: ranges before it may have been applied already; None: none.
        rest: of the statement at `end`, the changes still to be made to the table; None: it has not started.
        again: repeats the table's position, because the table's history expires its commits eventually.
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
        """The tag, or None if the text is not a tag."""
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
    """A tagged commit: the Delta version of the table, its tag, and its commit time in UTC."""

    version: int
    tag: CommitTag
    at: datetime


@dataclass(frozen=True, slots=True)
class TimedCommit:
    """A tagged commit and its commit time, in UTC."""

    at: datetime
    tag: CommitTag


def newest_own_commit(spark: SparkSession, table: str, app: str) -> OwnCommit | None:
    """The newest commit of `app` in the table's history, skipping OPTIMIZE, VACUUM and other tools' commits.

    None if the table does not exist or its remaining history has none.

    Raises:
        LakehouseError: the table cannot be read.
    """
    return next(own_commits(spark, table, app), None)


def own_commits(spark: SparkSession, table: str, app: str | None, *, least: int = 1) -> Iterator[OwnCommit]:
    """The commits of `app` in the table's remaining history, newest first, read lazily.

    Args:
        app: None for those of every dmdelta application.
        least: how many commits of any writer to read at once at least, if more than the newest are needed.

    Raises:
        LakehouseError: the table cannot be read.
    """
    oldest: int | None = None
    for limit in (*(page for page in _PAGES if page >= least), None):
        rows = _history(spark, table, limit)
        for version, text, at in rows:
            if oldest is not None and version >= oldest:
                continue  # on an earlier page
            oldest = version
            tag = CommitTag.from_json(text)
            if tag is not None and app in (tag.app, None):
                yield OwnCommit(version, tag, at)
        if limit is None or len(rows) < limit or oldest == 0:
            return


def newest_commits(spark: SparkSession, table: str, app: str) -> tuple[int | None, OwnCommit | None]:
    """The table's newest Delta version by any writer (None if the table does not exist), and the newest of `app`.

    Raises:
        LakehouseError: the table cannot be read.
    """
    rows = _history(spark, table, _PAGES[1])
    parsed = ((version, CommitTag.from_json(text), at) for version, text, at in rows)
    own = next((OwnCommit(version, tag, at) for version, tag, at in parsed if tag is not None and tag.app == app), None)
    if own is None and len(rows) == _PAGES[1]:
        own = newest_own_commit(spark, table, app)
    return rows[0][0] if rows else None, own


def timed_commits(spark: SparkSession, table: str, span: timedelta, most: int) -> tuple[list[TimedCommit], bool]:
    """The tagged commits of the last `span` of a table's history, newest first, and whether all of them were read.

    The span ends at the table's newest commit by any writer. Empty if the table does not exist.

    Args:
        most: maximum number of the table's commits to read.

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
    """(version, userMetadata, UTC) of the newest `limit` commits, newest first; empty if the table does not exist."""
    rows = _rows(spark, table, limit)
    return [(row["version"], row["userMetadata"], row["timestamp"].astimezone(timezone.utc)) for row in rows]


def _rows(spark: SparkSession, table: str, limit: int | None) -> list[Row]:
    """Version, timestamp and userMetadata of the newest `limit` commits, newest first; empty if there is no table."""
    query = f"DESCRIBE HISTORY {table}" + (f" LIMIT {limit}" if limit else "")
    with wrapped(table, "reading the history of"):
        try:
            return spark.sql(query).select("version", "timestamp", "userMetadata").collect()
        except Exception as error:
            if is_absent(error):
                return []
            raise
