"""The tag of the task's own commits, which the history of a table contains."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dmdelta.lakehouse.changes import Change
from dmdelta.model.position import Position


@dataclass(frozen=True, slots=True)
class CommitTag:
    """The identity of a commit: stored as its `userMetadata` and as its Delta transaction (`app`, `version`).

    Attributes:
        app: the transaction's application id: one writer of one table.
        version: increases with every commit of `app` and identifies one fixed range.
        run: id of the process's run, to distinguish two runners of a task.
        begin: the start of the range.
        end: the table's position after the commit: the next range starts here.
        gtid_set: every transaction up to `end`, None if not needed.
        safe_until: ranges before it may have been applied already; None: none.
        rest: of the statement at `end`, the changes still to be made to the table; None: it has not started.
        again: repeats the table's position, because the table's history expires its commits eventually.
        repaired: replaces rows of a table that is not inside a range, and keeps its position: not a part of a range.
    """

    app: str
    version: int
    task: str
    source: str
    run: str
    begin: Position
    end: Position
    gtid_set: str | None = None
    safe_until: Position | None = None
    rest: tuple[Change, ...] | None = None
    again: bool = False
    repaired: bool = False

    @property
    def begins_epoch(self) -> bool:
        """Whether a landing commit has no range, but marks where the log of an epoch, or a snapshot, begins."""
        return self.begin == self.end and not self.again

    @property
    def overlap_until(self) -> Position | None:
        """Up to where the log of a landing commit's epoch has changes that earlier rows may have; None: it tells none.

        Of a log whose beginning was marked, that is its beginning at least.
        """
        until = self.safe_until or (self.end if self.begins_epoch else None)
        return until if until is not None and self.end.chunk is None and until.epoch == self.end.epoch else None

    def precedes(self, statement: Position) -> bool:
        """Whether the commit leaves the table before a statement at a position."""
        return self.end < statement or (self.end == statement and self.rest is None)

    def to_json(self) -> str:
        return json.dumps({"dmdelta": 1, **self.to_dict()})

    def to_dict(self) -> dict[str, Any]:
        return {
            "app": self.app,
            "version": self.version,
            "task": self.task,
            "source": self.source,
            "run": self.run,
            "from": self.begin.to_dict(),
            "to": self.end.to_dict(),
            "gtid_set": self.gtid_set,
            **({"safe_until": self.safe_until.to_dict()} if self.safe_until else {}),
            **({"rest": [change.to_pair() for change in self.rest]} if self.rest is not None else {}),
            **({"again": True} if self.again else {}),
            **({"repaired": True} if self.repaired else {}),
        }

    @classmethod
    def from_json(cls, text: str | None) -> "CommitTag | None":
        """The tag, or None if the text is not a tag."""
        fields = _fields(text, 1)
        return None if fields is None else cls.from_dict(fields)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "CommitTag":
        return cls(
            app=fields["app"],
            version=fields["version"],
            task=fields["task"],
            source=fields["source"],
            run=fields["run"],
            begin=Position.from_dict(fields["from"]),
            end=Position.from_dict(fields["to"]),
            gtid_set=fields["gtid_set"],
            safe_until=Position.from_dict(fields["safe_until"]) if "safe_until" in fields else None,
            rest=tuple(map(Change.from_pair, fields["rest"])) if "rest" in fields else None,
            again=fields.get("again", False),
            repaired=fields.get("repaired", False),
        )


@dataclass(frozen=True, slots=True)
class KeptTags:
    """Tags that one commit repeats, because the table's history expires the commits that they are from.

    Attributes:
        newest: the newest tag of an application, `again`; the application with the newest commit first.
        marks: the tags of landing commits that began an epoch, or else tell its overlap, oldest first.
    """

    newest: tuple[CommitTag, ...]
    marks: tuple[CommitTag, ...] = ()

    def to_json(self) -> str:
        newest, marks = ([tag.to_dict() for tag in tags] for tags in (self.newest, self.marks))
        return json.dumps({"dmdelta": 2, "newest": newest, "marks": marks})

    @classmethod
    def from_json(cls, text: str | None) -> "KeptTags | None":
        """The tags, or None if the text has another form."""
        fields = _fields(text, 2)
        if fields is None:
            return None
        newest, marks = (tuple(map(CommitTag.from_dict, fields.get(name, ()))) for name in ("newest", "marks"))
        return cls(newest, marks)


def newest_tags(text: str | None) -> tuple[CommitTag, ...]:
    """The tags of a commit that are their application's newest: its own, or those that it repeats."""
    tag = CommitTag.from_json(text)
    if tag is not None:
        return (tag,)
    kept = KeptTags.from_json(text)
    return kept.newest if kept is not None else ()


def _fields(text: str | None, form: int) -> dict[str, Any] | None:
    try:
        fields: Any = json.loads(text or "")
    except ValueError:
        return None
    return fields if isinstance(fields, dict) and fields.get("dmdelta") == form else None


@dataclass(frozen=True, slots=True)
class OwnCommit:
    """A tagged commit: the Delta version of the table, its tag, and its commit time in UTC."""

    version: int
    tag: CommitTag
    at: datetime


@dataclass(frozen=True, slots=True)
class TimedCommit:
    """A tagged commit and its commit time, in UTC."""

    at: datetime
    tag: CommitTag
