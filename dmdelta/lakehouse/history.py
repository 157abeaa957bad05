"""The task's own commits in the history of a table: read with delta-rs under a local root, else with Spark."""

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from dmdelta.errors import UnsupportedTable
from dmdelta.lakehouse.access import commit_log
from dmdelta.lakehouse.access.commit_log import Commit, ReadCommits
from dmdelta.lakehouse.access.commit_tag import CommitTag, OwnCommit, TimedCommit
from dmdelta.lakehouse.access.interface import utc
from dmdelta.lakehouse.access.local_root import local_table
from dmdelta.lakehouse.access.object_store import object_table
from dmdelta.lakehouse.spark_errors import is_absent, wrapped
from dmdelta.model.position import Position

if TYPE_CHECKING:
    from dmdelta.lakehouse.access.delta_rs.local_table import LocalTable
    from dmdelta.lakehouse.access.delta_rs.remote_table import RemoteTable

__all__ = [
    "CommitTag",
    "OwnCommit",
    "TimedCommit",
    "commits",
    "epoch_marks",
    "newest_commits",
    "newest_own_commit",
    "overlap_ends",
    "own_commits",
    "spark_commits",
    "timed_commits",
]


def newest_own_commit(spark: SparkSession, table: str, app: str) -> OwnCommit | None:
    """The newest commit of `app` in the table's history, skipping OPTIMIZE, VACUUM and other tools' commits.

    None if the table does not exist or its remaining history has none.

    Raises:
        LakehouseError: the table cannot be read.
    """
    return commit_log.newest_own_commit(_reader(spark, table), app)


def own_commits(spark: SparkSession, table: str, app: str | None, *, least: int = 1) -> Iterator[OwnCommit]:
    """The commits of `app` in the table's remaining history, newest first, read lazily.

    Args:
        app: None for those of every dmdelta application.
        least: how many commits of any writer to read at once at least, if more than the newest are needed.

    Raises:
        LakehouseError: the table cannot be read.
    """
    return commit_log.own_commits(_reader(spark, table), app, least=least)


def epoch_marks(spark: SparkSession, table: str, app: str) -> list[CommitTag]:
    """The tags of the landing commits of `app` that began an epoch, newest first; those that the history still has, and
    those that maintenance has kept.

    Raises:
        LakehouseError: the table cannot be read.
    """
    return commit_log.epoch_marks(_reader(spark, table), app)


def overlap_ends(spark: SparkSession, table: str, app: str) -> dict[int, Position]:
    """Up to where the log of an epoch has changes that earlier rows may have, by epoch; none of one that does not.

    Raises:
        LakehouseError: the table cannot be read.
    """
    return commit_log.overlap_ends(_reader(spark, table), app)


def newest_commits(spark: SparkSession, table: str, app: str) -> tuple[int | None, OwnCommit | None]:
    """The table's newest Delta version by any writer (None if the table does not exist), and the newest of `app`.

    Raises:
        LakehouseError: the table cannot be read.
    """
    return commit_log.newest_commits(_reader(spark, table), app)


def timed_commits(spark: SparkSession, table: str, span: timedelta, most: int) -> tuple[list[TimedCommit], bool]:
    """The tagged commits of the last `span` of a table's history, newest first, and whether all of them were read.

    The span ends at the table's newest commit by any writer. Empty if the table does not exist.

    Args:
        most: maximum number of the table's commits to read.

    Raises:
        LakehouseError: the table cannot be read.
    """
    return commit_log.timed_commits(_reader(spark, table), span, most)


def commits(spark: SparkSession, table: str, limit: int | None) -> list[Commit]:
    """The newest `limit` commits by any writer, newest first; empty if the table does not exist.

    Raises:
        LakehouseError: the table cannot be read.
    """
    return _reader(spark, table)(limit)


def spark_commits(spark: SparkSession, table: str, limit: int | None) -> list[Commit]:
    """The newest `limit` commits as DESCRIBE HISTORY lists them, newest first; empty if the table does not exist.

    Raises:
        LakehouseError: the table cannot be read.
    """
    query = f"DESCRIBE HISTORY {table}" + (f" LIMIT {limit}" if limit else "")
    with wrapped(table, "reading the history of"):
        try:
            rows = spark.sql(query).select("version", "timestamp", "userMetadata").collect()
        except Exception as error:
            if is_absent(error):
                return []
            raise
    return [Commit(row["version"], row["userMetadata"], utc(row["timestamp"])) for row in rows]


def _reader(spark: SparkSession, table: str) -> ReadCommits:
    with_spark = partial(spark_commits, spark, table)
    reader = local_table(spark, table) or object_table(spark, table)
    return with_spark if reader is None else partial(_commits, reader, with_spark)


def _commits(reader: "LocalTable | RemoteTable", with_spark: ReadCommits, limit: int | None) -> list[Commit]:
    try:
        return reader.commits(limit)
    except UnsupportedTable:
        return with_spark(limit)
