"""Where a server's position is in the log that a task follows."""

import pytest

from dmdelta.engine.validation.landed_position import plan_position
from dmdelta.model.position import Position
from dmdelta.segments import EpochBegin
from dmdelta.source.server import ServerPosition

AT = ServerPosition("a", "b.000007", 900, None)


def begun(server, epoch):
    return EpochBegin(server, epoch, "mysql", "b.000001", 4, None)


@pytest.mark.parametrize(
    ("relayed", "epoch"),
    [
        (None, 2),
        (begun("b", 1), 2),
        (begun("a", 2), 2),
        (begun("b", 2), None),
        (begun("a", 3), 3),
        (begun("b", 3), None),
    ],
)
def test_a_position_is_in_the_epoch_of_its_server(relayed, epoch):
    """Bronze ends in epoch 2. The relay may be in a later one. The log of another server has no such position."""
    found = plan_position(AT, Position(2, "b.000009", 4), relayed)
    assert found == (None if epoch is None else Position(epoch, "b.000007", 900))
