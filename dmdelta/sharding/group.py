"""The shards of one merged table: the structure of each, and the statement that it waits with."""

from dataclasses import dataclass, field

from dmdelta.ddl.tracking.effects import Altered
from dmdelta.model.mysql_sql import quoted_name
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema


@dataclass(frozen=True, slots=True, order=True)
class Shard:
    """A source table among all tables of a task. Its text is DM's: source-`schema`.`table`."""

    source_id: str
    schema: str
    table: str

    @property
    def name(self) -> TableName:
        return (self.schema, self.table)

    def __str__(self) -> str:
        return f"{self.source_id}-{quoted_name(*self.name)}"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A statement that a shard waits before.

    Attributes:
        text: the statement, '' for a structure that was logged without one.
        altered: its effect on the shard's structure.
    """

    position: Position
    text: str
    altered: Altered


@dataclass(frozen=True, slots=True)
class Member:
    """One shard of a group.

    Attributes:
        schema: its structure at its current position, None if it is not known yet.
        waiting: the statement that it waits with, None if it is not waiting.
    """

    schema: TableSchema | None
    waiting: Waiting | None = None


@dataclass(slots=True)
class ShardingGroup:
    """All shards of one merged table, in the order in which they started to wait."""

    members: dict[Shard, Member] = field(default_factory=dict)

    def set_schema(self, shard: Shard, schema: TableSchema | None) -> None:
        """Record that a shard has this structure and is not waiting."""
        self.members[shard] = Member(schema)

    def waits(self, shard: Shard, waiting: Waiting) -> None:
        """Record that a shard waits before a statement. A shard that waits already keeps its place in the queue."""
        known = self.members.get(shard)
        if known is None or known.waiting is None or known.waiting.position != waiting.position:
            self.members.pop(shard, None)
        self.members[shard] = Member(waiting.altered.before, waiting)

    def remove_shard(self, shard: Shard) -> None:
        """Record that a shard was dropped, or renamed away."""
        self.members.pop(shard, None)

    @property
    def waiting(self) -> dict[Shard, Waiting]:
        return {shard: member.waiting for shard, member in self.members.items() if member.waiting is not None}
