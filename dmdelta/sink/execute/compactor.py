"""The compactor: merges several changes of a row into one, with DM's algebra.

INSERT+UPDATE → INSERT, INSERT+DELETE → DELETE, UPDATE+UPDATE → UPDATE, UPDATE+DELETE → DELETE, DELETE+INSERT → UPDATE.

Rows that exchange a key (a unique value moves, a primary key changes) are not compacted: each such group is executed
unchanged, in order and in one transaction. The remaining changes share no key with any other row, so they can be
executed in any order. For each row, a range is executed completely or not at all, so a restart may compact and slice
differently.
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
        rows: one change per row: deletes, then updates, then inserts.
        groups: changes of rows that exchange keys, each group in log order.
    """

    rows: list[Change]
    groups: list[list[Change]]


def compact(changes: Iterable[Change]) -> Compacted:
    """Compact changes of one table that has a key, given in log order."""
    every = changes if isinstance(changes, Sequence) else list(changes)
    group_of = _key_groups(every)
    net: dict[str, Change] = {}
    inserted: set[str] = set()
    groups: dict[str, list[Change]] = {}
    for change in every:
        group = group_of.get(change.keys[0]) if group_of else None
        if group is not None:
            groups.setdefault(group, []).append(change)
            continue
        earlier = net.get(change.identity)
        if earlier is None and change.act is Act.INSERT:
            inserted.add(change.identity)
        net[change.identity] = change if earlier is None else combined(earlier, change)
    rows = sorted((_net(change, inserted) for change in net.values()), key=lambda change: _ORDER[change.act])
    return Compacted(rows, list(groups.values()))


def _net(change: Change, inserted: set[str]) -> Change:
    """By the algebra INSERT+DELETE+INSERT is DELETE+INSERT, an UPDATE; but the row did not exist before."""
    new = change.act is Act.UPDATE and change.identity in inserted
    return change._replace(act=Act.INSERT, sets=None) if new else change


def combined(earlier: Change, later: Change) -> Change:
    """The one change that replaces two of the same row. For a pair that no log contains, the later act applies."""
    keys = earlier.keys if earlier.keys == later.keys else tuple(dict.fromkeys(earlier.keys + later.keys))
    act = _NET.get((earlier.act, later.act), later.act)
    return later._replace(act=act, keys=keys, events=earlier.events + later.events)


def _key_groups(changes: Sequence[Change]) -> dict[str, str]:
    """The group of each key that rows of more than one identity have held; keys of a single row are not included."""
    if all(len(change.keys) == 1 and change.was is None for change in changes):
        # One key, which never changes: rows are independent unless a collation treats two identities as one key.
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
    for key, identities_of_key in owners.items():
        members.setdefault(union.root(key), set()).update(identities_of_key)
    return {key: root for key in owners if len(members[root := union.root(key)]) > 1}


class _Union:
    """A union-find over keys."""

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
