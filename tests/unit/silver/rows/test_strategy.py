"""The apply strategy of a batch."""

import pytest

from dmdelta.silver.rows.strategy import BatchFacts, Mode, Step, plan_apply

NORMAL, SAFE = Mode.NORMAL, Mode.SAFE

CASES = [
    (BatchFacts(0, 0, 0), NORMAL, ()),
    (BatchFacts(9, 0, 0), NORMAL, (Step.APPEND,)),
    (BatchFacts(9, 0, 0), SAFE, (Step.MERGE,)),
    (BatchFacts(9, 0, 0, empty=True), SAFE, (Step.APPEND,)),
    (BatchFacts(9, 0, 0, repeats=True), NORMAL, (Step.REPLACE,)),
    (BatchFacts(9, 0, 0, empty=True, repeats=True), NORMAL, (Step.APPEND_COMPACTED,)),
    (BatchFacts(9, 0, 0, keyed=False, repeats=True), NORMAL, (Step.APPEND_KEYLESS,)),
    (BatchFacts(9, 9, 9, empty=True), SAFE, (Step.APPEND_COMPACTED,)),
    (BatchFacts(9, 9, 0), NORMAL, (Step.REPLACE,)),
    (BatchFacts(9, 9, 0, literal_keys=True), NORMAL, (Step.REPLACE_LITERALS,)),
    (BatchFacts(9, 0, 0, repeats=True, literal_keys=True), NORMAL, (Step.REPLACE_LITERALS,)),
    (BatchFacts(0, 0, 9, literal_keys=True), NORMAL, (Step.DELETE,)),
    (BatchFacts(0, 0, 9), NORMAL, (Step.DELETE_MERGE,)),
    (BatchFacts(1, 0, 9), NORMAL, (Step.MERGE,)),
    (BatchFacts(1, 10**6, 9), NORMAL, (Step.MERGE,)),
    (BatchFacts(1, 10**6, 0), NORMAL, (Step.REPLACE,)),
    (BatchFacts(1, 10**6, 9, literal_keys=True), NORMAL, (Step.REPLACE_LITERALS,)),
    (BatchFacts(1, 10**6, 9), SAFE, (Step.MERGE,)),
    (BatchFacts(1, 0, 9, literal_keys=True, replace=False), NORMAL, (Step.MERGE,)),
    (BatchFacts(0, 9, 0, moves=2), NORMAL, (Step.MERGE,)),
    (BatchFacts(0, 9, 0, moves=2, literal_keys=True), NORMAL, (Step.REPLACE_LITERALS,)),
    (BatchFacts(0, 9, 9), SAFE, (Step.MERGE,)),
    (BatchFacts(0, 9, 0, replace=False), NORMAL, (Step.MERGE,)),
    (BatchFacts(0, 9, 0, partial=True), NORMAL, (Step.MERGE_FOLDED,)),
    (BatchFacts(9, 9, 0, partial=True, empty=True), NORMAL, (Step.MERGE_FOLDED,)),
    (BatchFacts(9, 0, 0, keyed=False), NORMAL, (Step.APPEND_KEYLESS,)),
    (BatchFacts(9, 0, 0, keyed=False), SAFE, (Step.MERGE_KEYLESS,)),
    (BatchFacts(9, 0, 1, keyed=False), NORMAL, (Step.MERGE_KEYLESS,)),
]


@pytest.mark.parametrize(("facts", "mode", "steps"), CASES)
def test_plan(facts, mode, steps):
    """The plan has the cheapest correct commits for the batch; it appends only rows that are certainly new."""
    assert plan_apply(facts, mode) == steps
