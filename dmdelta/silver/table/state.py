"""The position of a source table in silver, from silver's commit history."""

from dataclasses import dataclass

from pyspark.sql import SparkSession

from dmdelta.lakehouse.history import OwnCommit, newest_commits, newest_own_commit
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
