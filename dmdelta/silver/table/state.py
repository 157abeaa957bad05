"""How far a source table's rows are in silver, as silver's own commits tell it."""

from dataclasses import dataclass

from pyspark.sql import SparkSession

from dmdelta.lakehouse.history import OwnCommit, newest_commits, newest_own_commit
from dmdelta.model.position import Position
from dmdelta.silver.table.target import Target


@dataclass(frozen=True, slots=True)
class SilverState:
    """What a silver table says of itself.

    Attributes:
        commit: its newest own commit, whose tag's `end` is where the table is; None if its kept history has none.
        delta_version: its newest Delta version, whoever made it; None if there is no table.
    """

    commit: OwnCommit | None
    delta_version: int | None

    @property
    def position(self) -> Position | None:
        return self.commit.tag.end if self.commit else None


def silver_position(spark: SparkSession, target: Target) -> OwnCommit | None:
    """The newest commit of a silver table for a source table: its tag's `end` is where the source table's rows are.

    None if its kept history has none or it is not there.

    Raises:
        LakehouseError: the history cannot be read.
    """
    return newest_own_commit(spark, target.place, target.app)


def silver_state(spark: SparkSession, target: Target) -> SilverState:
    """How far a source table's rows are in silver, asked at the start of a run.

    Raises:
        LakehouseError: the history cannot be read.
    """
    version, commit = newest_commits(spark, target.place, target.app)
    return SilverState(commit, version)
