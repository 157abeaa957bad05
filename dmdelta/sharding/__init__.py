"""Shard merge: several source tables, of one server or many, that go to one silver table and change their structure.

Owns sharding groups and DDL locks: which shards a statement waits for, in DM's pessimistic and optimistic mode. It
decides, silver acts: a shard whose statement waits is held where it is, and its log stays in bronze. What decides is
derived from facts that commits hold: the merged table's columns, and where each shard stands. So a lock needs no
memory of its own, and a restart in the middle finds it again. Must not know rows, segments or servers.
"""

from dmdelta.sharding.coordination import Action, Coordination, ShownLock, Verdict
from dmdelta.sharding.group import Member, Shard, Waiting
from dmdelta.sharding.lock import Lock, Mode, plan_lock
from dmdelta.sharding.operations import (
    Columns,
    Operation,
    Verb,
    held_type,
    holds,
    joining,
    merged_columns,
    name_among,
    operations,
    plain_type,
)

__all__ = [
    "Action",
    "Columns",
    "Coordination",
    "Lock",
    "Member",
    "Mode",
    "Operation",
    "Shard",
    "ShownLock",
    "Verb",
    "Verdict",
    "Waiting",
    "held_type",
    "holds",
    "joining",
    "merged_columns",
    "name_among",
    "operations",
    "plain_type",
    "plan_lock",
]
