"""Which structures of tables must be recorded again."""

import pytest

from dmdelta.model.recorded import RecordedStructures

A, B, OTHER = ("s", "a"), ("s", "b"), ("other", "a")


def filled(epoch: int = 3) -> RecordedStructures:
    return RecordedStructures(epoch, {A: 1, B: 2, OTHER: 3})


def test_a_structure_is_recorded_once() -> None:
    """A different one of the table is recorded, and so is the first one if it returns."""
    recorded = RecordedStructures()
    calls = [(A, 1), (A, 1), (B, 1), (A, 2), (B, 1), (A, 1), (A, 1)]
    assert [recorded.record(*call) for call in calls] == [True, False, True, True, False, True, False]


def test_nothing_is_known_at_the_beginning() -> None:
    """Epochs count from 1, so that the first segment begins one."""
    recorded = RecordedStructures()
    assert (recorded.epoch, recorded.versions, recorded.repeated) == (0, {}, frozenset())
    assert recorded.record(A, 0)


@pytest.mark.parametrize("epoch", [2, 4])
def test_another_epoch_records_everything_again(epoch: int) -> None:
    """Structures of an earlier or later epoch may be ahead of its log."""
    recorded = filled(3)
    recorded.begin_segment(epoch)
    assert (recorded.epoch, recorded.versions) == (epoch, {})
    assert recorded.record(A, 1)
    recorded.begin_segment(epoch)
    assert not recorded.record(A, 1)


def test_the_same_epoch_keeps_structures() -> None:
    """Except for those that each segment records."""
    recorded = RecordedStructures(3, {A: 1, B: 2}, frozenset({B, OTHER}))
    recorded.begin_segment(3)
    assert recorded.versions == {A: 1}


def test_a_statement_makes_a_structure_unknown() -> None:
    """On a table or on all tables of a database; others keep theirs."""
    recorded = filled()
    recorded.forget("s", "a")
    assert recorded.versions == {B: 2, OTHER: 3}
    recorded.forget("s", "unknown")
    assert recorded.versions == {B: 2, OTHER: 3}
    recorded = filled()
    recorded.forget("s", None)
    assert recorded.versions == {OTHER: 3}
    recorded.forget_all()
    assert recorded.versions == {}


def test_a_copy_is_independent() -> None:
    """A batch that does not land leaves the structures as they were."""
    recorded = RecordedStructures(3, {A: 1}, frozenset({B}))
    copy = recorded.copy([A, OTHER])
    assert (copy.epoch, copy.versions, copy.repeated) == (3, {A: 1}, {A, OTHER})
    assert recorded.copy().repeated == frozenset()
    copy.record(B, 2)
    assert recorded.versions == {A: 1}


def test_structures_survive_json() -> None:
    """Also names beyond ASCII, which stay readable."""
    recorded = RecordedStructures(3, {A: 1, ("größe", "t"): 2**62}, frozenset({A, B}))
    assert RecordedStructures.from_json(recorded.to_json()) == recorded
    assert "größe" in recorded.to_json()
    assert RecordedStructures.from_json(RecordedStructures().to_json()) == RecordedStructures()
