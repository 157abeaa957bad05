"""The version of a silver table that a live read starts from, and the ranges of the log that it adds: pure plans."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from dmdelta.lakehouse.history import OwnCommit
from dmdelta.model.position import Position
from dmdelta.silver.apply.request import leaves_whole
from dmdelta.silver.history.lineage import LogBeginning
from dmdelta.silver.rows.strategy import Mode

QUERY_TIME = timedelta(hours=1)
"""A query may take this long after its version was chosen."""


@dataclass(frozen=True, slots=True)
class Base:
    """A version of a silver table, and the position of a source table's rows in it.

    Attributes:
        position: the table has no changes between `committed` and this position, which is not before it.
        committed: the position that the table's commit names.
        ddl_applied_to: the position of the statement at `position`, if the version is the table after it.
        safe_until: the rows are only consistent with the log from this position on; None: from `position` on.
        is_newest: the table's commit is its newest one.
    """

    version: int
    position: Position
    committed: Position
    ddl_applied_to: Position | None = None
    safe_until: Position | None = None
    is_newest: bool = True


@dataclass(frozen=True, slots=True)
class TailRange:
    """A range [begin, end) of the log that a live read adds."""

    begin: Position
    end: Position
    mode: Mode
    ddl_applied_to: Position | None = None


def plan_base(
    commits: Iterable[OwnCommit],
    newest: int,
    at: Position,
    applied: Position | None,
    *,
    is_kept: Callable[[datetime], bool],
    is_reload: Callable[[Position], bool],
) -> Base | None:
    """The newest version of a silver table that has the table's rows at or before `at`; None if the history has none.

    A version between two of the source table's commits has the same rows: it may be a compaction, a repair, or the
    commit of another shard.

    Args:
        commits: the source table's commits, newest first.
        newest: a version of the silver table, read before the commits.
        applied: everything of the table before this position is in silver, according to a checkpoint that was read
            before the commits; None: unknown. It limits the tail of a table that rarely changes.
        is_kept: whether a version that was replaced at a time still has its files, for as long as a query takes.
        is_reload: whether an ad-hoc snapshot of the table resumes at a position.
    """
    following: OwnCommit | None = None
    for commit in commits:
        if following is not None and not is_kept(following.at):
            return None
        if commit.tag.precedes(at) and _is_whole(commit, is_reload):
            end, is_newest = commit.tag.end, following is None
            version = max(newest, commit.version) if following is None else following.version - 1
            ddl_applied_to = end if commit.tag.rest is not None else None
            base = Base(version, end, end, ddl_applied_to, commit.tag.safe_until, is_newest)
            if is_newest and applied is not None and end < applied <= at:
                return replace(base, position=applied, ddl_applied_to=None)
            return base
        following = commit
    return None


def _is_whole(commit: OwnCommit, is_reload: Callable[[Position], bool]) -> bool:
    """Whether the table equals the source table, except for the quarantine: not after a part of a range."""
    tag = commit.tag
    if tag.rest is not None:
        return not tag.rest
    return tag.begin != tag.end or leaves_whole(tag) or is_reload(tag.end)


def plan_tail(base: Base, at: Position, beginning: LogBeginning) -> tuple[TailRange, ...]:
    """The ranges after a version of silver, up to `at`.

    Args:
        beginning: of the epoch of `at`, if `base` was committed in an earlier one.
    """
    is_known = base.safe_until is None and base.committed.epoch == at.epoch
    mode = Mode.NORMAL if is_known else Mode.SAFE
    whole = TailRange(base.position, at, mode, base.ddl_applied_to)
    exact = beginning.exact
    if exact is None or exact <= base.position:
        return (whole,)
    rest = TailRange(exact, at, mode)
    if base.position.epoch == at.epoch:
        return (rest,)
    first = Position(at.epoch, f"{at.binlog_file.rpartition('.')[0]}.000000", 0)
    return (replace(whole, end=first), rest)


def unknown_until(base: Base, at: Position, beginning: LogBeginning) -> Position | None:
    """The position from which the rows are known, if they are unknown at `at`: a snapshot read them while they changed.

    None if they are known. `plan_unsettled` tells it of a replay.
    """
    until = (base.safe_until, beginning.known_from)
    return max((one for one in until if one is not None and at < one), default=None)
