"""The task's own commits in the history of a table, whichever implementation reads it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from dmdelta.lakehouse.access.commit_tag import CommitTag, KeptTags, OwnCommit, TimedCommit, newest_tags
from dmdelta.model.position import Position

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
    tags = (tag for commit in read(None) for tag in _landing_tags(commit) if tag.app == app and tag.begins_epoch)
    found = {tag.version: tag for tag in tags}
    return sorted(found.values(), key=lambda one: -one.version)


def overlap_ends(read: ReadCommits, app: str) -> dict[int, Position]:
    """Up to where the log of an epoch has changes that earlier rows may have, by epoch, as commits of `app` tell it."""
    ends: dict[int, Position] = {}
    for tag in (tag for commit in read(None) for tag in _landing_tags(commit)):
        until = tag.overlap_until
        if tag.app == app and until is not None:
            ends[until.epoch] = max(until, ends.get(until.epoch, until))
    return ends


def plan_kept(
    commits: Sequence[Commit], before: datetime, is_needed: Callable[[CommitTag], bool], *, marks: bool
) -> KeptTags | None:
    """What a commit has to repeat before a table's history loses older commits; None: nothing.

    Args:
        commits: the whole remaining history, newest first.
        before: what only older commits have is repeated.
        is_needed: whether anybody looks up the application of a tag.
        marks: the tags that began an epoch are repeated, too, or else the newest that tells its overlap.
    """
    newest: dict[str, OwnCommit] = {}
    for commit in commits:
        for tag in filter(is_needed, newest_tags(commit.user_metadata)):
            newest.setdefault(tag.app, OwnCommit(commit.version, tag, commit.at))
    stale = sorted((commit for commit in newest.values() if commit.at < before), key=lambda commit: -commit.version)
    found = _marks(commits) if marks else set()
    recent = {tag for commit in commits if commit.at >= before for tag in _landing_tags(commit)}
    if not stale and found <= recent:
        return None
    oldest_first = tuple(sorted(found, key=lambda tag: (tag.app, tag.version)))
    return KeptTags(tuple(replace(commit.tag, again=True) for commit in stale), oldest_first)


def _marks(commits: Iterable[Commit]) -> set[CommitTag]:
    """The tags that began an epoch, and of each epoch without one the newest that tells its overlap."""
    tags = [tag for commit in commits for tag in _landing_tags(commit)]
    began = {tag for tag in tags if tag.begins_epoch}
    marked = {(tag.app, tag.end.epoch) for tag in began}
    told = {(tag.app, tag.end.epoch): tag for tag in reversed(tags) if tag.overlap_until is not None}
    return began | {tag for epoch, tag in told.items() if epoch not in marked}


def _landing_tags(commit: Commit) -> tuple[CommitTag, ...]:
    """The tags of a commit of bronze, or those of earlier ones that it repeats as marks."""
    kept = KeptTags.from_json(commit.user_metadata)
    return kept.marks if kept is not None else newest_tags(commit.user_metadata)


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
