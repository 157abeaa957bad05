"""What the validator compares after a pass that failed. The log and the rows are replaced."""

from types import SimpleNamespace

import pytest

from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.validation import state
from dmdelta.engine.validation.state import Validation
from dmdelta.errors import SourceUnavailable
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.silver.schema.range_profile import TableEvents

RESUMED, LATER, OTHER = ("d", "resumed"), ("d", "later"), ("d", "other")


def at(offset):
    return Position(1, "binlog.000001", offset)


def events(name):
    return TableEvents(*name, {Op.INSERT: 1}, at(4), at(4))


class Looks:
    """Compares nothing; fails for the tables in `failing`."""

    def __init__(self):
        self.stop = StopRequest()
        self.failing = set()
        self.used = []

    def open(self, names):
        pass

    def use(self, name, _work, what):
        if name in self.failing:
            raise SourceUnavailable("gone", hint="wait")
        self.used.append((name, what))


@pytest.fixture
def validation(monkeypatch):
    monkeypatch.setattr(state, "tables_with_events", lambda *_: [events(OTHER)])
    monkeypatch.setattr(state, "table_events", lambda _spark, _context, name, *_: events(name))
    context = SimpleNamespace(rules=SimpleNamespace(wanted=lambda *_: True))
    left = {RESUMED: at(100), LATER: at(200)}
    return Validation(None, context, None, None, Looks(), lambda: (), position=at(500), _left=left)


@pytest.mark.parametrize("failing", [OTHER, RESUMED, LATER])
def test_changes_of_resumed_tables_are_compared_again_after_a_failure(validation, failing):
    """From the position at which each was paused, whichever table could not be compared."""
    validation.looks.failing = {failing}
    with pytest.raises(SourceUnavailable):
        validation.look_up_to(at(600))
    validation.looks.failing, validation.looks.used = set(), []
    validation.look_up_to(at(700))
    assert sorted(validation.looks.used) == [
        (LATER, f"its changes from {at(200)} to {at(700)}"),
        (OTHER, f"its changes from {at(500)} to {at(700)}"),
        (RESUMED, f"its changes from {at(100)} to {at(700)}"),
    ]
    assert validation.position == at(700)
    validation.looks.used = []
    validation.look_up_to(at(800))
    assert [name for name, _ in validation.looks.used] == [OTHER]
