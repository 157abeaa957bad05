"""The tag of the task's own commits, which the history of a table contains."""

import json
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

    def to_json(self) -> str:
        return json.dumps(
            {
                "dmdelta": 1,
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
            }
        )

    @classmethod
    def from_json(cls, text: str | None) -> "CommitTag | None":
        """The tag, or None if the text is not a tag."""
        try:
            fields: Any = json.loads(text or "")
        except ValueError:
            return None
        if not isinstance(fields, dict) or fields.get("dmdelta") != 1:
            return None
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
        )


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
