"""How a batch is applied: a pure decision, by the figures of DESIGN.md §2 (2 cores, Delta 4.4).

500,000 new rows: append 5 s, MERGE 21 s. 10,000 random keys of 16 million rows: replace 2.2 s, MERGE 9 s;
`DELETE … IN (literals)` 3.5 s, a matched-delete MERGE 8 s. So MERGE is for what the others cannot do. Of small batches
with deletes the number of commits counts: replacing 20 keys of a million by literals takes 1.3 s of CPU, a DELETE of
them and a replace by key 3.2 s, a MERGE 4.3 s; with 2,000 keys 2.2, 3.2 and 4.1 s.
"""

from dataclasses import dataclass
from enum import Enum

MAX_LITERAL_KEYS = 10_000
"""Keys that a DELETE takes as literals, by which Delta skips files; more go through a MERGE."""


MAX_REPLACED_KEYS = 2_000
"""Keys of a batch that are replaced by literals in one commit; with more, deletes and upserts have one each."""


class Mode(Enum):
    """What is known about the range."""

    NORMAL = "normal"
    """The table is exactly at the range's begin: a net insert is new for certain."""
    SAFE = "safe"
    """Some of the range may have been applied before: replace semantics, guarded by each row's version."""


class Step(Enum):
    """One commit."""

    APPEND = "append"
    """The inserted rows as they are: each key occurs once and is new."""
    APPEND_COMPACTED = "append compacted"
    """What is left of each key, into an empty table."""
    DELETE = "delete"
    """Net deletes by literal keys."""
    DELETE_MERGE = "delete merge"
    """Net deletes, too many for literals."""
    REPLACE_LITERALS = "replace literals"
    """Delete what is there of all keys of the batch, as literals, and append what is left of them."""
    REPLACE = "replace"
    """Delete by key what is there of the net inserts and updates, and append them."""
    MERGE = "merge"
    """Everything in one MERGE, each row guarded by its version."""
    MERGE_FOLDED = "merge folded"
    """As MERGE, from images that hold only some of the columns."""
    MERGE_MOVES = "merge moves"
    """Key changes in images that hold only some of the columns: the old row's other columns move with it."""
    APPEND_KEYLESS = "append keyless"
    """Rows of a table without a key, under their (epoch, seq, row)."""
    MERGE_KEYLESS = "merge keyless"
    """Multiset arithmetic: removes as many of the equal rows as were deleted, adds what was inserted."""


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """What the plan depends on.

    Attributes:
        inserts, updates, deletes: row changes by op.
        moves: updates that change the key.
        net_deletes: keys that are gone at the end, counted up to MAX_LITERAL_KEYS + 1.
        few_keys: the batch has deletes and upserts of at most MAX_REPLACED_KEYS keys, and these are known.
        keyed: the table has a key.
        partial: some images hold only some of the columns.
        empty: the silver table was made for this batch.
        replace: the lakehouse can replace by condition (Delta 4.3 on).
        failing: some rows are kept out of silver.
        repeats: a key that is inserted may be there, because a filter has left its delete out.
    """

    inserts: int
    updates: int
    deletes: int
    moves: int = 0
    net_deletes: int = 0
    few_keys: bool = False
    keyed: bool = True
    partial: bool = False
    empty: bool = False
    replace: bool = True
    failing: bool = False
    repeats: bool = False


def plan_apply(facts: BatchFacts, mode: Mode) -> tuple[Step, ...]:
    """The commits of a batch in their order. Only the last one names the batch's end: those before can be repeated."""
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
    if facts.few_keys:
        return (Step.REPLACE_LITERALS,)
    delete = Step.DELETE if facts.net_deletes <= MAX_LITERAL_KEYS else Step.DELETE_MERGE
    upserts = bool(facts.inserts or facts.updates)
    if not facts.net_deletes:
        return (Step.REPLACE,)
    return (delete, Step.REPLACE) if upserts else (delete,)
