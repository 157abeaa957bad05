"""XA transactions that commit in a range: their rows are further back in bronze and take effect at the commit."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Row, SparkSession

from dmdelta.changelog.ranges import IS_CHANGE, XaGroup
from dmdelta.model.position import Position
from dmdelta.model.spark_sql import literal

AT = "struct(epoch, seq, row, binlog_file AS file, binlog_pos AS pos)"
"""The position of a row, as SQL."""
_EVENT = "coalesce(gtid, concat(seq, ' ', unix_micros(committed_at)))"
"""What an event has in common with its copy in an epoch that reads the same log again, as SQL."""


@dataclass(frozen=True, slots=True)
class XaEpoch:
    """What one epoch has of the XA transactions with one xid.

    Attributes:
        first: `seq` of the first row change; None if there is none.
        ends: `seq` of each commit and rollback, by event.
    """

    epoch: int
    first: int | None
    ends: Mapping[str, int]


def position_of(at: Row | Mapping[str, Any]) -> Position:
    """The position selected by `AT`."""
    return Position(at["epoch"], at["file"], at["pos"])


def committed_groups(spark: SparkSession, bronze: str, source: str, inside: str) -> list[tuple[XaGroup, Position]]:
    """The XA transactions that commit among the rows of `source` and `inside` (SQL), and where, unordered."""
    commits = spark.sql(
        f"SELECT xid, {AT} AS at, {_EVENT} AS event FROM {bronze} WHERE {source} AND {inside} AND op = 'xa_commit'"
    ).collect()
    if not commits:
        return []
    xids = ", ".join(sorted({literal(commit["xid"]) for commit in commits}))
    # Delta skips files without these xids by their statistics, however long ago the rows were prepared.
    lines = spark.sql(
        f"""SELECT xid, epoch, min(seq) FILTER (WHERE {IS_CHANGE}) AS first,
        collect_list(struct({_EVENT} AS event, seq)) FILTER (WHERE op IN ('xa_commit', 'xa_rollback')) AS ends
        FROM {bronze} WHERE {source} AND xid IN ({xids}) GROUP BY xid, epoch"""
    ).collect()
    epochs: dict[str, list[XaEpoch]] = defaultdict(list)
    for line in lines:
        ends = {end["event"]: end["seq"] for end in line["ends"]}
        epochs[line["xid"]].append(XaEpoch(line["epoch"], line["first"], ends))
    groups: list[tuple[XaGroup, Position]] = []
    for commit in commits:
        xid, at = commit["xid"], (commit["at"]["epoch"], commit["at"]["seq"])
        groups.append((plan_group(xid, at, commit["event"], epochs[xid]), position_of(commit["at"])))
    return groups


def plan_group(xid: str, at: tuple[int, int], event: str, epochs: Sequence[XaEpoch]) -> XaGroup:
    """The rows of the XA transaction that commits at `at`.

    They are in the commit's epoch, or, if it begins after them, in the newest earlier one that has rows or an end of
    an earlier transaction with the same xid. An earlier epoch may have read the same log beyond the commit: then it has
    a copy of the commit, and only what is before the copy counts.

    Args:
        event: identifies the commit and its copies.
        epochs: in any order.
    """
    own, seq = at
    for one in sorted(epochs, key=lambda one: one.epoch, reverse=True):
        if one.epoch > own:
            continue
        until = seq if one.epoch == own else one.ends.get(event)
        after = max((end for end in one.ends.values() if until is None or end < until), default=None)
        has_rows = one.first is not None and (until is None or one.first <= until)
        if after is not None or has_rows:
            return XaGroup(xid, at, one.epoch, after, until)
    return XaGroup(xid, at, own, None, seq)
