"""The landed ranges of a log that a reader has not processed, also where bronze's history has lost their commits.

And where the logs of servers that took over have the rest of an overlap.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from pyspark.sql import SparkSession

from dmdelta.bronze.progress import LandedRange, landed_range, landing_app, plan_rest
from dmdelta.changelog.context import SourceContext
from dmdelta.changelog.ranges import of_source
from dmdelta.changelog.xa import AT, position_of
from dmdelta.lakehouse.commits import CommitTag
from dmdelta.lakehouse.history import epoch_marks, own_commits
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.gtid import GtidSet, parse_gtid_set
from dmdelta.model.position import FAR, Position


@dataclass(frozen=True, slots=True)
class LaterLogs:
    """Where the logs of the servers that took over have the rest of an overlap.

    Attributes:
        log_end: where the server's log ended when an epoch started that continues another server's log; None: unknown.
    """

    spark: SparkSession
    source: SourceContext
    log_end: Callable[[int], Position | None]
    _ends: dict[int, Position | None] = field(default_factory=dict)

    def rest(self, until: Position, epoch: int) -> Position | None:
        """The end of an overlap, as a position in the log of an epoch; None if an earlier log has passed it.

        Args:
            until: the end of the overlap, in the log of that epoch or of an earlier one, which has landed completely.

        Raises:
            LakehouseError: bronze's history cannot be read. CorruptBinlog: as `log_end`.
        """
        rest: Position | None = until
        while rest is not None and rest.epoch < epoch:
            rest = plan_rest(rest, self._ended(rest.epoch), self.log_end(rest.epoch + 1))
        return rest

    def _ended(self, epoch: int) -> Position | None:
        """Where the log of an epoch ended; None if bronze's history has lost it."""
        if epoch not in self._ends:
            app = landing_app(self.source.task, self.source.source_id)
            ends = (commit.tag.end for commit in own_commits(self.spark, self.source.bronze, app))
            end = next((end for end in ends if end.epoch <= epoch), None)
            self._ends[epoch] = end if end is not None and end.epoch == epoch else None
        return self._ends[epoch]


def landed_batches(spark: SparkSession, source: SourceContext) -> list[LandedRange]:
    """The landed batches, oldest first, as far back as bronze's history is kept."""
    tags = [commit.tag for commit in own_commits(spark, source.bronze, landing_app(source.task, source.source_id))]
    return _batches(tags, source)


def ranges_after(
    spark: SparkSession, source: SourceContext, landed: LandedRange, after: Position | None
) -> list[LandedRange]:
    """The landed ranges that end after `after`, oldest first: batches, and before them ranges without a commit.

    Args:
        landed: the end of bronze.
        after: None: all.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    if after is not None and landed.end <= after:
        return []
    app = landing_app(source.task, source.source_id)
    tags = [commit.tag for commit in own_commits(spark, source.bronze, app)]
    newer = list(takewhile(lambda tag: after is None or tag.end > after, tags))
    batches = _batches(newer, source)
    if len(newer) < len(tags) or (batches and batches[0].batch == 1):
        return batches  # the history reaches back to it
    begin = after if after is not None else _first_position(spark, source)
    first = batches[0] if batches else landed
    if begin is None or (batches and begin >= first.begin):
        return batches
    return [*plan_lost(begin, first, epoch_marks(spark, source.bronze, app), source), *batches[1:]]


def plan_lost(
    begin: Position, first: LandedRange, marks: Sequence[CommitTag], source: SourceContext
) -> list[LandedRange]:
    """The ranges from `begin` to the end of `first`, one for each epoch.

    Their numbers are those of lost batches: of each epoch, at least one batch is lost.

    Args:
        first: the oldest batch that the history has.
        marks: where epochs began.
    """
    began = {tag.end.epoch: tag for tag in reversed(marks)}
    parts: list[LandedRange] = []
    epochs = range(begin.epoch, first.end.epoch)
    for number, epoch in enumerate(epochs, first.batch - len(epochs)):
        end, following = Position(epoch, FAR, 0), began.get(epoch + 1)
        gtid_set = _gtid_set(following, source)
        parts.append(LandedRange(max(1, number), begin, end, gtid_set, _safe_until(began.get(epoch), begin)))
        begin = following.end if following is not None else _beginning(first.end.binlog_file, epoch + 1)
    begin = min(begin, first.begin)
    return [
        *parts,
        replace(first, begin=begin, safe_until=_safe_until(began.get(begin.epoch), begin, first.safe_until)),
    ]


def _batches(tags: Sequence[CommitTag], source: SourceContext) -> list[LandedRange]:
    """The batches of tags, newest first: each once, and without the repetitions of positions."""
    found: dict[int, CommitTag] = {}
    for tag in tags:
        if not tag.again or tag.begin != tag.end:
            found.setdefault(tag.version, tag)
    return [landed_range(found[version], source) for version in sorted(found)]


def _safe_until(mark: CommitTag | None, begin: Position, known: Position | None = None) -> Position | None:
    """Up to where a log that an epoch repeats reaches, if it reaches beyond `begin`."""
    until = mark.safe_until if mark is not None else None
    return max(filter(None, (until if until is not None and until > begin else None, known)), default=None)


def _gtid_set(mark: CommitTag | None, source: SourceContext) -> GtidSet:
    return parse_gtid_set((mark.gtid_set if mark is not None else None) or "", source.flavor)


def _beginning(file: str, epoch: int) -> Position:
    return Position(epoch, f"{file.rpartition('.')[0]}.000000", 0)


def _first_position(spark: SparkSession, source: SourceContext) -> Position | None:
    """The position of a source's first row; None if it has none."""
    query = f"""SELECT min(struct(epoch, seq, {AT} AS at)) AS first FROM {source.bronze}
        WHERE {of_source(source.source_id)} AND epoch > 0"""
    with wrapped(source.bronze, "reading"):
        (row,) = spark.sql(query).collect()
    return position_of(row["first"]["at"]) if row["first"] is not None else None
