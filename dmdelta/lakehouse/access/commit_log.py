"""The task's own commits in the history of a table, whichever implementation reads it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from dmdelta.lakehouse.access.commit_tag import CommitTag, KeptTags, OwnCommit, TimedCommit, newest_tags

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
            tags = newest_tags(commit.user_metadata)
            yield from (OwnCommit(commit.version, tag, commit.at) for tag in tags if app in (tag.app, None))
        if limit is None or len(commits) < limit or oldest == 0:
            return


def newest_own_commit(read: ReadCommits, app: str) -> OwnCommit | None:
    """The newest commit of `app`, skipping OPTIMIZE, VACUUM and other tools' commits; None if there is none."""
    return next(own_commits(read, app), None)


def newest_commits(read: ReadCommits, app: str) -> tuple[int | None, OwnCommit | None]:
    """The newest Delta version by any writer (None if the table does not exist), and the newest commit of `app`."""
    commits = read(_PAGES[1])
    parsed = ((commit, tag) for commit in commits for tag in newest_tags(commit.user_metadata))
    own = next((OwnCommit(commit.version, tag, commit.at) for commit, tag in parsed if tag.app == app), None)
    if own is None and len(commits) == _PAGES[1]:
        own = newest_own_commit(read, app)
    return commits[0].version if commits else None, own


def epoch_marks(read: ReadCommits, app: str) -> list[CommitTag]:
    """The tags of `app` that began an epoch, newest first: of the remaining history, and those that were kept."""
    found: dict[int, CommitTag] = {}
    for commit in read(None):
        kept, tag = KeptTags.from_json(commit.user_metadata), CommitTag.from_json(commit.user_metadata)
        tags = kept.marks if kept is not None else (tag,) if tag is not None and tag.begins_epoch else ()
        found |= {one.version: one for one in tags if one.app == app}
    return sorted(found.values(), key=lambda one: -one.version)


def plan_kept(
    commits: Sequence[Commit], before: datetime, is_needed: Callable[[CommitTag], bool], *, marks: bool
) -> KeptTags | None:
    """What a commit has to repeat before a table's history loses older commits; None: nothing.

    Args:
        commits: the whole remaining history, newest first.
        before: what only older commits have is repeated.
        is_needed: whether anybody looks up the application of a tag.
        marks: the tags that began an epoch are repeated, too.
    """
    newest: dict[str, OwnCommit] = {}
    found: dict[tuple[str, int], CommitTag] = {}
    recent: set[tuple[str, int]] = set()
    for commit in commits:
        tags, kept = newest_tags(commit.user_metadata), KeptTags.from_json(commit.user_metadata)
        for tag in filter(is_needed, tags):
            newest.setdefault(tag.app, OwnCommit(commit.version, tag, commit.at))
        began = {(tag.app, tag.version): tag for tag in (kept.marks if kept is not None else tags) if tag.begins_epoch}
        found |= began if marks else {}
        recent |= began.keys() if commit.at >= before else set()
    stale = sorted((commit for commit in newest.values() if commit.at < before), key=lambda commit: -commit.version)
    if not stale and found.keys() <= recent:
        return None
    oldest_first = tuple(found[key] for key in sorted(found))
    return KeptTags(tuple(replace(commit.tag, again=True) for commit in stale), oldest_first)


def timed_commits(read: ReadCommits, span: timedelta, most: int) -> tuple[list[TimedCommit], bool]:
    """The tagged commits of the last `span`, newest first, and whether all of them were read.

    The span ends at the newest commit by any writer.

    Args:
        most: maximum number of commits to read.
    """
    for limit in (_PAGES[-1], most):
        commits = read(limit)
        whole = not commits or commits[-1].version == 0 or commits[-1].at < commits[0].at - span
        if whole or len(commits) < limit:
            break  # the history has expired further back
    timed = ((commit.at, CommitTag.from_json(commit.user_metadata)) for commit in commits)
    return [TimedCommit(at, tag) for at, tag in timed if tag is not None and at >= commits[0].at - span], whole
