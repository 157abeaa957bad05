"""The commits of a Delta table, read from the files of its log: without Spark, beside a run that writes them."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from dmdelta.lakehouse.history import CommitTag
from dmdelta.model.position import Position

CREATIONS = frozenset({"CREATE TABLE", "CREATE OR REPLACE TABLE"})


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of a table.

    Attributes:
        at: when it became visible to readers, in UTC.
        tag: None for a commit that is not dmdelta's, and for maintenance.
    """

    version: int
    at: datetime
    operation: str
    tag: CommitTag | None


def read_commits(table: Path, since: int = 0) -> list[Commit]:
    """The commits of the table in a folder from version `since` on, in order; none if the table does not exist."""
    found = []
    for file in (table / "_delta_log").glob("[0-9]*.json"):
        if file.stem.isdigit() and int(file.stem) >= since:
            at = datetime.fromtimestamp(file.stat().st_mtime, timezone.utc)
            found.append(parse_commit(int(file.stem), at, file.read_text()))
    return sorted(found, key=lambda commit: commit.version)


def parse_commit(version: int, at: datetime, text: str) -> Commit:
    """A commit from the text of its file: one JSON action per line."""
    actions = (json.loads(line) for line in text.split("\n") if line)
    info: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    return Commit(version, at, info.get("operation", "unknown"), CommitTag.from_json(info.get("userMetadata")))


def applying(commits: Iterable[Commit]) -> list[Commit]:
    """The commits that belong to a turn: tagged, no keepalive, and not the creation of the table."""
    own = (commit for commit in commits if commit.operation not in CREATIONS)
    return [commit for commit in own if commit.tag is not None and not commit.tag.again]


def ends(commits: Iterable[Commit]) -> list[tuple[Position, datetime]]:
    """The positions that a table has reached, ascending, each with the time of the first commit that reached it."""
    found: list[tuple[Position, datetime]] = []
    for commit in commits:
        if commit.tag is not None and (not found or found[-1][0] < commit.tag.end):
            found.append((commit.tag.end, commit.at))
    return found


@dataclass(frozen=True, slots=True)
class Turns:
    """Commits of silver tables: all own commits that apply changes, the turns, and the other commits by operation."""

    commits: int
    turns: int
    others: Counter[str]


def turns_of(tables: Iterable[Sequence[Commit]], begin: datetime, end: datetime) -> Turns:
    """The commits between two times. A turn is a distinct end position of a table.

    Of a turn with several commits, only the last one has a new end.
    """
    commits, turns, others = 0, 0, Counter[str]()
    for table in tables:
        within = [commit for commit in table if begin <= commit.at < end]
        own = applying(within)
        commits += len(own)
        turns += len({commit.tag.end for commit in own if commit.tag and commit.tag.begin < commit.tag.end})
        others.update(commit.operation for commit in within if commit not in own)
    return Turns(commits, turns, others)
