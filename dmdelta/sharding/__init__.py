"""Shard merge: source tables of one or several servers that share a silver table and change their structure.

Owns sharding groups and DDL locks: which shards a statement waits for, in DM's pessimistic and optimistic mode. This
package decides, silver acts: a shard whose statement waits is paused at its position, and its log stays in bronze. The
decisions derive from facts in commits: the merged table's columns, and the position of each shard. So a lock needs no
stored state, and a restart in the middle derives it again. Must not know rows, segments or servers.
"""

from dmdelta.sharding.coordination import IDLE_SECONDS, Action, Coordination, ShardSides, ShownLock, Verdict
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
    "IDLE_SECONDS",
    "Action",
    "Columns",
    "Coordination",
    "Lock",
    "Member",
    "Mode",
    "Operation",
    "Shard",
    "ShardSides",
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
