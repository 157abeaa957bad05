"""The compactor: many changes of a row become one, by the algebra of DM.

INSERT+UPDATE → INSERT, INSERT+DELETE → DELETE, UPDATE+UPDATE → UPDATE, UPDATE+DELETE → DELETE, DELETE+INSERT → UPDATE.

Rows that take a key over from one another (a unique value moves, a primary key changes) are not compacted: each such
group goes on as it is, in order and in one transaction. What is left over compares no key with any other row, so it may
be executed in any order, and what was executed of a range is always all or nothing of a row: a restart may compact and
cut differently.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dmdelta.sink.change import Act, Change

_NET = {
    (Act.INSERT, Act.UPDATE): Act.INSERT,
    (Act.INSERT, Act.DELETE): Act.DELETE,
    (Act.UPDATE, Act.UPDATE): Act.UPDATE,
    (Act.UPDATE, Act.DELETE): Act.DELETE,
    (Act.DELETE, Act.INSERT): Act.UPDATE,
}
_ORDER = {Act.DELETE: 0, Act.UPDATE: 1, Act.INSERT: 2}


class Compacted(NamedTuple):
    """
    Attributes:
        rows: one change a row, deletes first, then updates, then inserts.
        groups: changes of rows that take keys over from one another, each group in the order of the log.
    """

    rows: list[Change]
    groups: list[list[Change]]


def compact(changes: Iterable[Change]) -> Compacted:
    """Compact changes of one table that has a key, given in the order of the log."""
    every = changes if isinstance(changes, Sequence) else list(changes)
    tangled = _tangled(every)
    net: dict[str, Change] = {}
    made: set[str] = set()
    groups: dict[str, list[Change]] = {}
    for change in every:
        group = tangled.get(change.keys[0]) if tangled else None
        if group is not None:
            groups.setdefault(group, []).append(change)
            continue
        earlier = net.get(change.identity)
        if earlier is None and change.act is Act.INSERT:
            made.add(change.identity)
        net[change.identity] = change if earlier is None else combined(earlier, change)
    rows = sorted((_net(change, made) for change in net.values()), key=lambda change: _ORDER[change.act])
    return Compacted(rows, list(groups.values()))


def _net(change: Change, made: set[str]) -> Change:
    """INSERT+DELETE+INSERT is DELETE+INSERT, an UPDATE, by the algebra; but the row was not there."""
    new = change.act is Act.UPDATE and change.identity in made
    return change._replace(act=Act.INSERT, sets=None) if new else change


def combined(earlier: Change, later: Change) -> Change:
    """The one change that stands for two of the same row. Of a pair that no log holds, the later one's act counts."""
    keys = earlier.keys if earlier.keys == later.keys else tuple(dict.fromkeys(earlier.keys + later.keys))
    act = _NET.get((earlier.act, later.act), later.act)
    return later._replace(act=act, keys=keys, events=earlier.events + later.events)


def _tangled(changes: Sequence[Change]) -> dict[str, str]:
    """The group of each key that rows with more than one identity have had; nothing for the keys of other rows."""
    if all(len(change.keys) == 1 and change.was is None for change in changes):
        # One key, which never changes: rows cannot meet, except where two identities count as one key.
        identities: dict[str, str] = {}
        if all(identities.setdefault(change.keys[0], change.identity) == change.identity for change in changes):
            return {}
    union = _Union()
    owners: dict[str, set[str]] = {}
    for change in changes:
        first = change.keys[0]
        for key in change.keys[1:]:
            union.join(first, key)
        owners.setdefault(first, set()).add(change.identity)
        if change.was is not None:
            owners[first].add(change.was)
    members: dict[str, set[str]] = {}
    for key, found in owners.items():
        members.setdefault(union.root(key), set()).update(found)
    return {key: root for key in owners if len(members[root := union.root(key)]) > 1}


class _Union:
    """Keys that belong together."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}

    def root(self, key: str) -> str:
        path = []
        while (above := self._above.get(key, key)) != key:
            path.append(key)
            key = above
        for passed in path:
            self._above[passed] = key
        return key

    def join(self, one: str, other: str) -> None:
        left, right = self.root(one), self.root(other)
        if left != right:
            self._above[right] = left
