"""The apply strategy of a batch: a pure decision, based on measurements (2 cores, Delta 4.4; decision record 0013).

A batch is one commit, except key changes with partial images. New rows are appended: 500,000 rows take 5 s, a MERGE of
them 21 s. Integer keys are replaced by literals: 20 keys of a million take 1.3 s of CPU, a MERGE 4.3 s. The history
keeps literals, so other keys are replaced by a join with the batch, and deletes of them need MERGE. Two commits, one
for the deletes and one that replaces, are not cheaper than one MERGE, also for large batches. CPU of two passes over a
million rows with a text key, 10 % deletes: 50,000 changes 23 and 16 s as one MERGE, 22 and 17 s as two commits;
300,000 changes 17 and 15 s, 18 and 15 s.
"""

from dataclasses import dataclass
from enum import Enum

MAX_REPLACED_KEYS = 10_000
"""The maximum number of distinct keys that one commit replaces by literals."""


class Mode(Enum):
    """Whether some of the range may have been applied before."""

    NORMAL = "normal"
    """The table is exactly at the range's begin: a net insert is certainly a new row."""
    SAFE = "safe"
    """DM's safe mode. Some of the range may have been applied before: replace semantics, checked by row version."""


class Step(Enum):
    """The operation of one commit."""

    APPEND = "append"
    """Append the inserted rows: each key occurs once and is new."""
    APPEND_COMPACTED = "append compacted"
    """Append the compacted rows to an empty table."""
    DELETE = "delete"
    """Delete the keys of a batch that only deletes, by literals of integer keys. A replace or MERGE without new rows
    would leave an empty file behind."""
    DELETE_MERGE = "delete merge"
    """Delete the net deletes by key, with a MERGE that only deletes."""
    REPLACE_LITERALS = "replace literals"
    """Delete the existing rows of all keys of the batch by literals, and append the compacted rows: integer keys only,
    because the table's history keeps the literals."""
    REPLACE = "replace"
    """Delete the existing rows of the net inserts and updates by key, and append those."""
    MERGE = "merge"
    """Apply all net changes with one MERGE, which checks each row's version."""
    MERGE_FOLDED = "merge folded"
    """As MERGE, from partial row images."""
    MERGE_MOVES = "merge moves"
    """Apply key changes with partial row images: the missing columns come from the old row."""
    APPEND_KEYLESS = "append keyless"
    """Append rows of a table without a key."""
    MERGE_KEYLESS = "merge keyless"
    """Apply changes of a table without a key: delete as many equal rows as the source did, add the inserted rows."""


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """The input of the plan.

    Attributes:
        inserts, updates, deletes: row changes by op.
        moves: updates that change the key.
        literal_keys: there is a condition of literals for the batch's keys.
        keyed: the table has a key.
        partial: there are partial row images.
        empty: the silver table was created for this batch.
        replace: the lakehouse supports replace by condition (since Delta 4.3).
        failing: some rows are quarantined.
        repeats: an inserted key may exist in silver, because a filter excluded its delete.
    """

    inserts: int
    updates: int
    deletes: int
    moves: int = 0
    literal_keys: bool = False
    keyed: bool = True
    partial: bool = False
    empty: bool = False
    replace: bool = True
    failing: bool = False
    repeats: bool = False


def plan_apply(facts: BatchFacts, mode: Mode) -> tuple[Step, ...]:
    """The commits of a batch in order. Only the last one records the batch's end; the others are idempotent."""
    if not facts.inserts + facts.updates + facts.deletes:
        return ()
    only_inserts = not facts.updates and not facts.deletes
    fresh = facts.empty or mode is Mode.NORMAL
    if not facts.keyed:
        return (Step.APPEND_KEYLESS,) if only_inserts and fresh else (Step.MERGE_KEYLESS,)
    if only_inserts and fresh and not facts.repeats:
        return (Step.APPEND,)
    if facts.partial:
        return (Step.MERGE_FOLDED,)
    if facts.empty:
        return (Step.APPEND_COMPACTED,)
    if mode is Mode.SAFE or not facts.replace or facts.failing:
        return (Step.MERGE,)
    if not facts.inserts and not facts.updates:
        return (Step.DELETE,) if facts.literal_keys else (Step.DELETE_MERGE,)
    if facts.literal_keys:
        return (Step.REPLACE_LITERALS,)
    return (Step.MERGE,) if facts.deletes or facts.moves else (Step.REPLACE,)
