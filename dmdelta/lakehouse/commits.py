"""Idempotent writes: each is one Delta commit bound to a `CommitTag`; Delta skips it if it exists already.

A session must serve one writer at a time, because MERGE, DELETE and UPDATE take transaction ids from its confs.

Every write is confirmed, because Delta skips an existing transaction silently. The session contains the version that
its last write committed, if it committed one. If the caller names the table's version of its own newest commit as
`after`, and the session has the next version, then the write committed, and no other commit is in between: reading
the history would find the same commit. In all other cases the history decides: the write was skipped or changed
nothing (the session has no version), there are commits in between, `after` is None, or the session does not contain
versions. Fencing is as strict as with the history alone: another run's commit of the same application takes a Delta
version, so that the number is no longer the next one, or makes Delta skip the write. The history then shows that
commit, also if a later one of this run follows it, and the write ends in Fenced.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from itertools import takewhile

from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.errors import CommitConflict, LakehouseError
from dmdelta.lakehouse.access.boundary import fenced
from dmdelta.lakehouse.access.table_writers import spark_writes
from dmdelta.lakehouse.changes import Change, Verb
from dmdelta.lakehouse.history import CommitTag, OwnCommit, newest_commits, own_commits
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.logging import get_logger

__all__ = [
    "CommitTag",
    "OwnCommit",
    "append",
    "assert_alone",
    "delete",
    "make_change",
    "merge",
    "overwrite",
    "replace_using",
    "replace_where",
]

log = get_logger(__name__)
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
APPEND_TRIES = 3
_COMMITTED = "spark.databricks.delta.lastCommitVersionInSession"
"""The version that the session's last commit gave to its table, whichever it is."""
_APP = "spark.databricks.delta.write.txnAppId"
_VERSION = "spark.databricks.delta.write.txnVersion"


def append(spark: SparkSession, rows: DataFrame, table: str, tag: CommitTag, *, after: int | None = None) -> OwnCommit:
    """Append rows in one commit; retry if the table's properties were changed meanwhile: nothing else can conflict.

    Args:
        rows: of the session `spark`.
        after: the table's Delta version after this run's previous commit; None: unknown.

    Raises:
        Fenced: another run committed under this app at or after this version.
        CommitConflict: other writers committed first in every attempt; nothing was written.
        LakehouseError: the table cannot be written. A dmdelta error from an executor is raised as itself.
    """
    for tries_left in reversed(range(APPEND_TRIES)):
        try:
            with wrapped(table, "appending to"), spark_writes(table):
                previous = _watched(spark, after)
                # Not saveAsTable: in a thread without a previous SQL statement, it does not find a table by its path.
                writer = rows.writeTo(table).option("userMetadata", tag.to_json())
                writer.option("txnAppId", tag.app).option("txnVersion", str(tag.version)).append()
            break
        except CommitConflict:
            if not tries_left:
                raise
    return _confirmed(spark, table, tag, previous)


def assert_alone(spark: SparkSession, table: str, tag: CommitTag, after: int) -> None:
    """Check before rows are appended that no other run has committed since a version of the table.

    Delta skips a version that is not newer than the application's newest. Another run that joins ranges differently may
    have appended some of the rows under an older version.

    Raises:
        Fenced: another run has committed.
        LakehouseError: the table cannot be read.
    """
    if _others_since(own_commits(spark, table, tag.app), tag, after):
        raise fenced(table)


def overwrite(
    spark: SparkSession, rows: DataFrame, table: str, tag: CommitTag, *, columns_too: bool = False, among: str = ""
) -> OwnCommit:
    """Replace all rows with `rows`, in one commit.

    Args:
        among: a condition (SQL) for the rows to replace, which all of `rows` fulfil; '' for all.
        columns_too: the table's columns become those of `rows`; Delta then drops the clustering columns.

    Raises:
        Fenced, CommitConflict, LakehouseError: as `append`.
    """
    with wrapped(table, "overwriting"):
        writer = rows.writeTo(table).option("userMetadata", tag.to_json())
        writer.option("overwriteSchema", str(columns_too).lower())
        writer.option("txnAppId", tag.app).option("txnVersion", str(tag.version)).overwrite(F.expr(among or "true"))
    return _confirmed(spark, table, tag, None)


def replace_using(
    spark: SparkSession, rows: DataFrame, table: str, on: str, tag: CommitTag, *, after: int | None = None
) -> OwnCommit:
    """Delete the rows that one of `rows` replaces and append `rows`, in one commit (since Delta 4.3).

    Args:
        on: the condition (SQL) between a row of the table (`_dm_target`) and one of `rows` (`_dm_source`).
        after: as `append`.

    Raises:
        Fenced, CommitConflict, LakehouseError: as `append`.
    """
    # Not replaceUsing, which splits its value at commas and compares with `=`.
    with wrapped(table, "replacing rows of"):
        previous = _watched(spark, after)
        writer = _tagged(rows.alias("_dm_source"), tag).mode("overwrite")
        writer.option("replaceOn", on).option("targetAlias", "_dm_target").saveAsTable(table)
    return _confirmed(spark, table, tag, previous)


def replace_where(
    spark: SparkSession, rows: DataFrame, table: str, condition: str, tag: CommitTag, *, after: int | None = None
) -> OwnCommit:
    """Delete the rows that match `condition` (SQL) and append `rows`, which all match it, in one commit.

    The table's history contains the condition.

    Args:
        after: as `append`.

    Raises:
        Fenced, CommitConflict, LakehouseError: as `append`.
    """
    with wrapped(table, "replacing rows of"):
        previous = _watched(spark, after)
        writer = _tagged(rows, tag).mode("overwrite")
        writer.option("replaceWhere", condition).saveAsTable(table)
    return _confirmed(spark, table, tag, previous)


def merge(spark: SparkSession, statement: str, table: str, tag: CommitTag, *, after: int | None = None) -> OwnCommit:
    """Run a MERGE statement on `table` as one commit. Delta commits its transaction even if no row changes.

    Args:
        after: as `append`.

    Raises:
        Fenced, CommitConflict, LakehouseError: as `append`.
    """
    previous = _watched(spark, after)
    _run(spark, statement, table, tag)
    return _confirmed(spark, table, tag, previous)


def delete(spark: SparkSession, table: str, condition: str, tag: CommitTag) -> OwnCommit | None:
    """Delete the rows that match `condition` (SQL), in one commit; None if there are none: Delta commits nothing.

    The table's history contains the condition.

    Raises:
        Fenced, CommitConflict, LakehouseError: as `append`.
    """
    _run(spark, f"DELETE FROM {table} WHERE {condition}", table, tag)
    return _read_back(spark, table, tag)


def make_change(spark: SparkSession, table: str, change: Change, tag: CommitTag) -> OwnCommit | None:
    """Commit a planned change; None if there was nothing to do, so that Delta did not commit.

    Raises:
        Fenced, CommitConflict, LakehouseError: as `append`.
    """
    if change.verb is Verb.DELETE:
        return delete(spark, table, change.text, tag)
    if change.verb is Verb.REWRITE:
        with wrapped(table, "reading"):
            rows = spark.sql(f"FROM {table} SELECT {change.text}")
        return overwrite(spark, rows, table, tag, columns_too=True)
    # An ALTER gets the tag, but no transaction: only the tag identifies it.
    statement = f"UPDATE {table} {change.text}" if change.verb is Verb.UPDATE else f"ALTER TABLE {table} {change.text}"
    _run(spark, statement, table, tag)
    return _read_back(spark, table, tag)


def _tagged(rows: DataFrame, tag: CommitTag) -> DataFrameWriter:
    writer = rows.write.format("delta").option("userMetadata", tag.to_json())
    return writer.option("txnAppId", tag.app).option("txnVersion", str(tag.version))


def _run(spark: SparkSession, statement: str, table: str, tag: CommitTag) -> None:
    with wrapped(table, "changing"), tagged(spark, tag):
        spark.sql(statement).collect()


@contextmanager
def tagged(spark: SparkSession, tag: CommitTag) -> Iterator[None]:
    """Commits of SQL statements in this context have the tag."""
    # Not with Delta's autoReset: it unsets the version before the commit, so a conflict's retry would have none.
    confs = {USER_METADATA: tag.to_json(), _APP: tag.app, _VERSION: str(tag.version)}
    try:
        for name, value in confs.items():
            _set(spark, name, value)
        yield
    finally:
        for name in confs:
            spark.conf.unset(name)


def _set(spark: SparkSession, name: str, value: str) -> None:
    try:
        spark.conf.set(name, value)
    except Exception as error:
        raise LakehouseError(
            f"Spark rejects the conf {name}, without which a statement's commit cannot be identified",
            hint="use compute that allows setting it; on Databricks a job cluster: docs/databricks.md",
        ) from error


def _watched(spark: SparkSession, after: int | None) -> int | None:
    """Remove the version of the session's previous commit: a version that is there later is the next commit's.

    Returns:
        `after`; None if this compute does not allow removing it, because the version may then be an older commit's.
    """
    if after is None:
        return None
    try:
        spark.conf.unset(_COMMITTED)
    except Exception as error:  # noqa: BLE001 - whatever the reason, the history contains the commit
        log.debug("the session's last version cannot be removed", why=type(error).__name__)
        return None
    return after


def _committed_version(spark: SparkSession) -> int | None:
    """The version that the session has committed since `_watched`; None if it does not contain one."""
    try:
        text = spark.conf.get(_COMMITTED, None)
    except Exception as error:  # noqa: BLE001 - whatever the reason, the history contains it
        log.debug("the session does not show the committed version", why=type(error).__name__)
        return None
    return int(text) if text else None


def _others_since(commits: Iterator[OwnCommit], tag: CommitTag, after: int) -> bool:
    """Whether another run than that of `tag` has committed since a version.

    Args:
        commits: newest first.
    """
    since = takewhile(lambda commit: commit.version > after, commits)
    return any(commit.tag.run != tag.run and not commit.tag.again for commit in since)


def _confirmed(spark: SparkSession, table: str, tag: CommitTag, after: int | None) -> OwnCommit:
    """The commit of a write that always commits, or exists already; from the session if it is the one after `after`."""
    if after is not None and _committed_version(spark) == after + 1:
        return OwnCommit(after + 1, tag, datetime.now(timezone.utc))
    return _read_back(spark, table, tag, after) or _expired(spark, table, tag)


def _expired(spark: SparkSession, table: str, tag: CommitTag) -> OwnCommit:
    """A commit that Delta skipped because the table has it, although the log retention removed it from the history.

    Delta keeps an application's newest version for longer than commits.

    Raises:
        Fenced: the history has other commits of the application: another runner just made them.
    """
    version, newest = newest_commits(spark, table, tag.app)
    if version is None or newest is not None:
        raise fenced(table)
    log.info("commit is in the table but no longer in its history", table=table, version=tag.version)
    return OwnCommit(version, tag, datetime.now(timezone.utc))


def _read_back(spark: SparkSession, table: str, tag: CommitTag, after: int | None = None) -> OwnCommit | None:
    """The commit of `tag` in the history; None if the newest one there precedes it.

    Delta skips an existing version silently: only the history shows whether it belongs to this run.

    Raises:
        Fenced: another run has committed under the same application, at this version, later, or since `after`.
    """
    # With a known predecessor the history is read because other commits are probably in between.
    commits = own_commits(spark, table, tag.app, least=1 if after is None else 2)
    newest = next(commits, None)
    if newest is None or newest.tag.version < tag.version:
        return None
    if newest.tag.run != tag.run or newest.tag.version > tag.version:
        raise fenced(table)
    if after is not None and newest.version > after + 1 and _others_since(commits, tag, after):
        raise fenced(table)
    return newest
