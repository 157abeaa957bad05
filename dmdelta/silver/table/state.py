"""The position of a source table in silver, from silver's commit history."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from dmdelta.lakehouse.history import CommitTag, OwnCommit, newest_commits, newest_own_commit, own_commits
from dmdelta.model.position import Position
from dmdelta.silver.table.target import Target


@dataclass(frozen=True, slots=True)
class SilverState:
    """The state of a silver table in its Delta history.

    Attributes:
        commit: its newest own commit, whose tag's `end` is the table's position; None if the history has none.
        delta_version: its newest Delta version, by any writer; None if the table does not exist.
    """

    commit: OwnCommit | None
    delta_version: int | None

    @property
    def position(self) -> Position | None:
        return self.commit.tag.end if self.commit else None


def silver_position(spark: SparkSession, target: Target) -> OwnCommit | None:
    """The newest commit for a source table in its silver table. Its tag's `end` is the source table's position.

    None if the history has none, or the table does not exist.

    Raises:
        LakehouseError: the history cannot be read.
    """
    return newest_own_commit(spark, target.place, target.app)


def silver_state(spark: SparkSession, target: Target) -> SilverState:
    """The state of a source table in silver, for the start of a run.

    Raises:
        LakehouseError: the history cannot be read.
    """
    version, commit = newest_commits(spark, target.place, target.app)
    return SilverState(commit, version)


def may_be_ahead(spark: SparkSession, target: Target, at: Position, *, completed: bool) -> bool:
    """Whether a silver table may contain changes after a statement that the log has reached: see `is_ahead`.

    Args:
        completed: count the statement itself as such a change.

    Raises:
        LakehouseError: the history cannot be read.
    """
    version, _ = newest_commits(spark, target.place, target.app)
    commits = own_commits(spark, target.place, None)
    return version is not None and is_ahead([*commits], target.context.source_id, at, completed=completed)


def is_ahead(commits: Sequence[OwnCommit], source: str, at: Position, *, completed: bool) -> bool:
    """Whether the history of a table does not show that it is behind a statement.

    It does if the table was created empty, and every commit since then is from the log before the statement. A commit
    of another epoch is from a snapshot, or from a log that was read to another end.

    Args:
        commits: all commits of dmdelta that the history still has, newest first.
        source: the source of the log.
        at: the position of the statement.
        completed: a table for which the statement has begun is ahead.
    """
    has_all = bool(commits) and commits[-1].version == 0
    return not has_all or not all(
        commit.tag.source == source and _is_behind(commit.tag, at, completed=completed) for commit in commits
    )


def _is_behind(tag: CommitTag, at: Position, *, completed: bool) -> bool:
    return tag.end.epoch == at.epoch and (tag.precedes(at) or (tag.end == at and not completed))
