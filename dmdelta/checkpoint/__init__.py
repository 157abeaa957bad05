"""The progress of each table: points in memory, their flushed record, and the conclusions that a restart draws from it.

Owns the table `dm_meta.<task>_checkpoint`, the rules by which points move (global <= every table <= exit point), the
asynchronous flush and the pure decision where, and in which mode, a table resumes. Must not know how changes are landed
or applied: callers report ranges and table versions. Its record is never the proof of what was committed; each table's
own history is.
"""

from dmdelta.checkpoint.flusher import Flusher
from dmdelta.checkpoint.points import ORIGIN, FlushReason, Point, Points, Snapshot, StoredPoints, TablePoint
from dmdelta.checkpoint.restart_plan import (
    RestartPlan,
    SafeModePolicy,
    SourceEvidence,
    TableEvidence,
    inherited_exit,
    plan_restart,
)
from dmdelta.checkpoint.store import CheckpointStore, checkpoint_rows, load_points

__all__ = [
    "ORIGIN",
    "CheckpointStore",
    "FlushReason",
    "Flusher",
    "Point",
    "Points",
    "RestartPlan",
    "SafeModePolicy",
    "Snapshot",
    "SourceEvidence",
    "StoredPoints",
    "TableEvidence",
    "TablePoint",
    "checkpoint_rows",
    "inherited_exit",
    "load_points",
    "plan_restart",
]
