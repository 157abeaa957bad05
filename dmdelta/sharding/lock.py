"""Which shards a statement on a merged table waits for: a pure decision.

Pessimistic: the merged table changes once every shard is at the statement, or behind it. Optimistic: it becomes what
holds the rows of all shards at once; only a type that no other can hold waits for the others to have it, too. Source
of the words: DM's documentation, "Merge and migrate data from sharded tables" in both modes.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum

from dmdelta.ddl.outcome import widens
from dmdelta.sharding.group import Member, Shard
from dmdelta.sharding.operations import Columns, Operation, Verb, operations


class Mode(str, Enum):
    """How shards agree on a structure (`shard-mode`)."""

    PESSIMISTIC = "pessimistic"
    OPTIMISTIC = "optimistic"


@dataclass(frozen=True, slots=True)
class Lock:
    """A statement that waits for other shards.

    Attributes:
        owner: the shard that came first with it.
        operations: what it does to the merged table.
        ready: shards that are at it or behind it, the owner among them.
        remain: shards that have not come to it yet.
        conflicts: shards that wait with a statement that does something else.
    """

    owner: Shard
    operations: frozenset[Operation]
    ready: tuple[Shard, ...]
    remain: tuple[Shard, ...] = ()
    conflicts: tuple[Shard, ...] = ()

    @property
    def is_resolved(self) -> bool:
        """Nobody is waited for."""
        return not self.remain and not self.conflicts


def plan_lock(shard: Shard, members: Mapping[Shard, Member], there: Columns, mode: Mode) -> Lock | None:
    """The lock of the statement that a shard waits with; None if it has nothing to do to the merged table."""
    waiting = members[shard].waiting
    assert waiting is not None, "only a shard that waits has a lock"
    wanted = operations(waiting.altered, there)
    if not wanted:
        return None
    agreed = wanted if mode is Mode.PESSIMISTIC else {op for op in wanted if not _holds_both(op, there)}
    ready, remain, conflicts = [shard], list[Shard](), list[Shard]()
    for other, member in members.items():
        if other == shard:
            continue
        if _is_ready(member, wanted, agreed, there):
            ready.append(other)
        elif member.waiting is not None and operations(member.waiting.altered, there):
            conflicts.append(other)
        else:
            remain.append(other)
    owner = next(other for other in members if other in ready and members[other].waiting is not None)
    return Lock(owner, wanted, tuple(ready), tuple(remain), tuple(conflicts))


def _is_ready(member: Member, wanted: Collection[Operation], agreed: Collection[Operation], there: Columns) -> bool:
    if member.waiting is not None and operations(member.waiting.altered, there) == wanted:
        return True
    return all(member.schema is not None and op.is_done(member.schema) for op in agreed)


def _holds_both(operation: Operation, there: Columns) -> bool:
    """The merged table can do it for one shard and hold the rows of the others."""
    if operation.verb is not Verb.RETYPE:
        return True
    present = there.type(operation.column) or there.type(operation.was) or operation.type
    return present == operation.type or widens(present, operation.type) or widens(operation.type, present)
