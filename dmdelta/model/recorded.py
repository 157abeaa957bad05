"""The structures that `schema` rows have recorded: decoding writes a table's structure only where it is not known.

The rule: each row change has the structure of the newest `schema` row of its table before it, and no statement on the
table is between the two. So a `schema` row is left out only if it repeats the table's newest one, and no statement on
the table has followed that: a statement may drop, rename or replace a table and leave its structure the same.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass, field

from dmdelta.model.schema import TableName


@dataclass(slots=True)
class RecordedStructures:
    """The structures in force at a position of a log. Decoding updates them, so segments must follow each other.

    Attributes:
        epoch: of the log; in another one all structures are recorded again, because earlier ones may be ahead of it.
        versions: by table, the version of its newest `schema` row, if no statement on the table follows it.
        repeated: tables whose structure is recorded in each segment: a snapshot writes structures of theirs, too.
    """

    epoch: int = 0
    versions: dict[TableName, int] = field(default_factory=dict)
    repeated: frozenset[TableName] = frozenset()

    def begin_segment(self, epoch: int) -> None:
        """The following calls are for a segment of an epoch."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.versions.clear()
        for name in self.repeated:
            self.versions.pop(name, None)

    def record(self, name: TableName, version: int) -> bool:
        """Record the structure of a table map; returns whether that requires a `schema` row."""
        if self.versions.get(name) == version:
            return False
        self.versions[name] = version
        return True

    def forget(self, schema: str, table: str | None) -> None:
        """A statement follows, on a table or (None) on a database."""
        if table is not None:
            self.versions.pop((schema, table), None)
            return
        for name in [name for name in self.versions if name[0] == schema]:
            del self.versions[name]

    def forget_all(self) -> None:
        """What follows is decoded elsewhere, or unknown."""
        self.versions.clear()

    def copy(self, repeated: Collection[TableName] = ()) -> "RecordedStructures":
        """A copy for the next batch, which must be discarded if the batch does not land."""
        return RecordedStructures(self.epoch, dict(self.versions), frozenset(repeated))

    def to_json(self) -> str:
        listed = [[*name, version] for name, version in self.versions.items()]
        return json.dumps([self.epoch, listed, sorted(self.repeated)], ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "RecordedStructures":
        epoch, listed, repeated = json.loads(text)
        versions = {(schema, table): version for schema, table, version in listed}
        return cls(epoch, versions, frozenset((schema, table) for schema, table in repeated))
