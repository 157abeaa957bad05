"""Slices of a batch at key changes."""

from dmdelta.silver.rows.key_changes import Move, Slice, plan_slices


def move(rank, old, new):
    return Move(rank, (1, rank * 10, 0), old, new)


def at(rank, row=0):
    return (1, rank * 10, row)


def test_slices():
    """The rows between key changes are separate slices; consecutive key changes are one slice."""
    assert plan_slices([move(3, "a", "b"), move(4, "c", "d")], 9) == (
        Slice(None, at(3), moves=False),
        Slice(at(3), at(4, 1), moves=True),
        Slice(at(4, 1), None, moves=False),
    )


def test_chains_are_split():
    """A key change of a key that the previous one created is a new slice; the reuse of a freed key is not."""
    assert [part.begin for part in plan_slices([move(1, "a", "b"), move(2, "b", "c")], 2)] == [at(1), at(2)]
    assert len(plan_slices([move(1, "b", "c"), move(2, "a", "b")], 2)) == 1


def test_condition():
    """The SQL condition selects the slice's rows."""
    assert Slice(at(1), at(2), moves=True).condition == (
        "struct(epoch, seq, row) >= named_struct('epoch', 1, 'seq', 10L, 'row', 0)"
        " AND struct(epoch, seq, row) < named_struct('epoch', 1, 'seq', 20L, 'row', 0)"
    )
    assert Slice(None, None, moves=False).condition == "true"
