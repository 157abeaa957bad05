"""Whether silver has followed a statement before, as a pure decision.

In safe mode silver can be ahead of the log: it then has the columns of later statements, too. A table that the log
itself has created is not ahead of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dmdelta.ddl.tracking.effects import Altered
from dmdelta.errors import SchemaError
from dmdelta.lakehouse.access.commit_tag import CommitTag, OwnCommit
from dmdelta.model.position import Position


@dataclass(frozen=True, slots=True)
class Shapes:
    """Names and types of columns.

    Attributes:
        present: those of silver.
        before, after: those that the structures before and after a statement have in silver.
    """

    present: Mapping[str, str]
    before: Mapping[str, str]
    after: Mapping[str, str]


def was_followed(altered: Altered, shapes: Shapes, *, exact: bool) -> bool:
    """Whether silver has followed a statement before.

    Args:
        exact: silver follows every statement. Otherwise it may have columns that the source dropped.

    Raises:
        SchemaError: silver's columns do not show it.
    """
    has_all = shapes.after.items() <= shapes.present.items()
    has_dropped = any(name in shapes.present for name in shapes.before if name not in shapes.after)
    if not has_all or has_dropped:
        if _is_before(shapes, exact=exact):
            return False
        # A column that silver lacks, or has again, is that of a later statement.
        raise SchemaError("silver's columns do not show whether it was applied before")
    if altered.reused_name is not None:
        raise SchemaError(
            f"it reuses the name {altered.reused_name} for another column, and may have been applied before"
        )
    return True


def _is_before(shapes: Shapes, *, exact: bool) -> bool:
    """Whether silver has the structure before the statement."""
    if exact:
        return shapes.present == shapes.before
    new = {name.lower() for name in shapes.after} - {name.lower() for name in shapes.before}
    lower = {name.lower() for name in shapes.present}
    return shapes.before.items() <= shapes.present.items() and not new & lower


def is_ahead(commits: Sequence[OwnCommit], source: str, at: Position) -> bool:
    """Whether silver may contain changes after a statement that the log has reached.

    It does not if every commit since the table was created is from the same log before the statement. A commit of
    another epoch is from a snapshot, or from a log that has been read to another end.

    Args:
        commits: all commits of dmdelta that the table's history still has, newest first.
        source: the source of the log.
        at: the position of the statement.
    """
    has_all = bool(commits) and commits[-1].version == 0
    return not has_all or not all(commit.tag.source == source and _is_behind(commit.tag, at) for commit in commits)


def _is_behind(tag: CommitTag, at: Position) -> bool:
    """Whether a commit leaves the table before the statement at a position, of the same epoch."""
    if tag.end == at:
        return tag.rest is None
    return tag.end.epoch == at.epoch and tag.end < at
