"""The task's own commits in the history of a table, whichever implementation reads it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from dmdelta.lakehouse.access.commit_tag import CommitTag, OwnCommit, TimedCommit

_PAGES = (1, 20, 500)


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit by any writer: the Delta version of the table, its `userMetadata`, and its time in UTC."""

    version: int
    user_metadata: str | None
    at: datetime


ReadCommits = Callable[[int | None], list[Commit]]
"""The newest commits of a table, newest first: at most so many (None: all that remain); empty if it does not exist."""


def own_commits(read: ReadCommits, app: str | None, *, least: int = 1) -> Iterator[OwnCommit]:
    """The commits of `app` in the remaining history, newest first, read lazily.

    Args:
        app: None for those of every dmdelta application.
        least: how many commits of any writer to read at once at least, if more than the newest are needed.
    """
    oldest: int | None = None
    for limit in (*(page for page in _PAGES if page >= least), None):
        commits = read(limit)
        for commit in commits:
            if oldest is not None and commit.version >= oldest:
                continue  # on an earlier page
            oldest = commit.version
            tag = CommitTag.from_json(commit.user_metadata)
            if tag is not None and app in (tag.app, None):
                yield OwnCommit(commit.version, tag, commit.at)
        if limit is None or len(commits) < limit or oldest == 0:
            return


def newest_own_commit(read: ReadCommits, app: str) -> OwnCommit | None:
    """The newest commit of `app`, skipping OPTIMIZE, VACUUM and other tools' commits; None if there is none."""
    return next(own_commits(read, app), None)


def newest_commits(read: ReadCommits, app: str) -> tuple[int | None, OwnCommit | None]:
    """The newest Delta version by any writer (None if the table does not exist), and the newest commit of `app`."""
    commits = read(_PAGES[1])
    parsed = ((commit, CommitTag.from_json(commit.user_metadata)) for commit in commits)
    own = next((OwnCommit(commit.version, tag, commit.at) for commit, tag in parsed if tag and tag.app == app), None)
    if own is None and len(commits) == _PAGES[1]:
        own = newest_own_commit(read, app)
    return commits[0].version if commits else None, own


def timed_commits(read: ReadCommits, span: timedelta, most: int) -> tuple[list[TimedCommit], bool]:
    """The tagged commits of the last `span`, newest first, and whether all of them were read.

    The span ends at the newest commit by any writer.

    Args:
        most: maximum number of commits to read.
    """
    for limit in (_PAGES[-1], most):
        commits = read(limit)
        whole = len(commits) < limit or commits[-1].at < commits[0].at - span
        if whole:
            break
    timed = ((commit.at, CommitTag.from_json(commit.user_metadata)) for commit in commits)
    return [TimedCommit(at, tag) for at, tag in timed if tag is not None and at >= commits[0].at - span], whole
