"""The stored state of the validator."""

from dmdelta.engine.validation.store import ValidatorProgress, count_errors, error_id
from dmdelta.model.position import Position
from dmdelta.quality.pending import ErrorState


def test_progress_round_trip():
    """Including tables whose names contain dots."""
    place = Position(3, "binlog.000012", 4711)
    progress = ValidatorProgress(place, "fast", 7, {"s.ü": "it has no key"}, {("a.b", "c"): place}, "away")
    assert ValidatorProgress.from_json(progress.to_json()) == progress
    assert ValidatorProgress.from_json(ValidatorProgress().to_json()) == ValidatorProgress()


def test_an_error_has_one_id():
    """The id depends on source, table and key, and on nothing else."""
    ids = [("s", (("a", "b"), "1")), ("s", (("a.b", ""), "1")), ("s", (("a", "b"), "2")), ("r", (("a", "b"), "1"))]
    assert len({error_id(*one) for one in ids}) == len(ids)
    assert error_id("s", (("a", "b"), "1")) == error_id("s", (("a", "b"), "1"))


def test_states_without_errors_are_counted():
    """So that a metric is 0, not missing."""
    assert count_errors([]) == dict.fromkeys(ErrorState, 0)
