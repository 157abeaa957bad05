"""XA transactions that commit in a range: their rows are further back in bronze and take effect at the commit."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Row, SparkSession

from dmdelta.changelog.ranges import XaGroup
from dmdelta.model.position import Position
from dmdelta.model.spark_sql import literal

AT = "struct(epoch, seq, row, binlog_file AS file, binlog_pos AS pos)"
"""The position of a row, as SQL."""


def position_of(at: Row | Mapping[str, Any]) -> Position:
    """The position selected by `AT`."""
    return Position(at["epoch"], at["file"], at["pos"])


def committed_groups(spark: SparkSession, bronze: str, source: str, inside: str) -> list[tuple[XaGroup, Position]]:
    """The XA transactions that commit among the rows of `source` and `inside` (SQL), and where, unordered."""
    commits = spark.sql(
        f"SELECT xid, {AT} AS at FROM {bronze} WHERE {source} AND {inside} AND op = 'xa_commit'"
    ).collect()
    if not commits:
        return []
    xids = ", ".join(sorted({literal(commit["xid"]) for commit in commits}))
    # Delta skips files without these xids by their statistics, however long ago the rows were prepared.
    ends = spark.sql(
        f"""SELECT xid, epoch, seq FROM {bronze}
        WHERE {source} AND xid IN ({xids}) AND op IN ('xa_commit', 'xa_rollback')"""
    ).collect()
    groups: list[tuple[XaGroup, Position]] = []
    for commit in commits:
        until = (commit["at"]["epoch"], commit["at"]["seq"])
        earlier = [(end["epoch"], end["seq"]) for end in ends if end["xid"] == commit["xid"]]
        after = max((end for end in earlier if end < until), default=None)
        groups.append((XaGroup(commit["xid"], after, until), position_of(commit["at"])))
    return groups
