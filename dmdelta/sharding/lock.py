"""Which shards a statement on a merged table waits for: a pure decision.

Pessimistic: the merged table changes once every shard is at the statement, or past it. Optimistic: it immediately takes
a structure that holds the rows of all shards; only a type that is incompatible with the others' waits until they have
it as well. Terms: DM's documentation, "Merge and migrate data from sharded tables" in both modes.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum

from dmdelta.ddl.types.outcome import widens
from dmdelta.sharding.group import Member, Shard
from dmdelta.sharding.operations import Columns, Operation, Verb, operations


class Mode(str, Enum):
    """How the structures of shards are coordinated (`shard-mode`)."""

    PESSIMISTIC = "pessimistic"
    OPTIMISTIC = "optimistic"


@dataclass(frozen=True, slots=True)
class Lock:
    """A statement that waits for other shards.

    Attributes:
        owner: the shard that reached it first.
        operations: its effect on the merged table.
        ready: shards that are at it or past it, including the owner.
        remain: shards that have not reached it yet.
        conflicts: shards that wait with a statement that has a different effect.
    """

    owner: Shard
    operations: frozenset[Operation]
    ready: tuple[Shard, ...]
    remain: tuple[Shard, ...] = ()
    conflicts: tuple[Shard, ...] = ()

    @property
    def is_resolved(self) -> bool:
        """Whether no other shard is waited for."""
        return not self.remain and not self.conflicts


HoldsBoth = Callable[[Operation, Columns], bool]
"""Whether a merged table with these columns can execute an operation for one shard and still hold the others' rows."""


def plan_lock(
    shard: Shard, members: Mapping[Shard, Member], existing: Columns, mode: Mode, at_once: HoldsBoth | None = None
) -> Lock | None:
    """The lock of the statement that a shard waits with; None if it does not affect the merged table.

    Args:
        at_once: what waits for no other shard in optimistic mode; None: what silver can hold.
    """
    waiting = members[shard].waiting
    assert waiting is not None, "only a waiting shard has a lock"
    required = operations(waiting.altered, existing)
    if not required:
        return None
    at_once = at_once or _holds_both
    agreed = required if mode is Mode.PESSIMISTIC else {op for op in required if not at_once(op, existing)}
    ready, remain, conflicts = [shard], list[Shard](), list[Shard]()
    for other, member in members.items():
        if other == shard:
            continue
        if _is_ready(member, required, agreed, existing):
            ready.append(other)
        elif member.waiting is not None and operations(member.waiting.altered, existing):
            conflicts.append(other)
        else:
            remain.append(other)
    owner = next(other for other in members if other in ready and members[other].waiting is not None)
    return Lock(owner, required, tuple(ready), tuple(remain), tuple(conflicts))


def _is_ready(
    member: Member, required: Collection[Operation], agreed: Collection[Operation], existing: Columns
) -> bool:
    if member.waiting is not None and operations(member.waiting.altered, existing) == required:
        return True
    return all(member.schema is not None and op.is_done(member.schema) for op in agreed)


def _holds_both(operation: Operation, existing: Columns) -> bool:
    """Whether a table that distinguishes the shards' rows can execute it for one shard and hold those of the others."""
    if operation.verb is not Verb.RETYPE:
        return True
    present = existing.type(operation.column) or existing.type(operation.was) or operation.type
    return present == operation.type or widens(present, operation.type) or widens(operation.type, present)
