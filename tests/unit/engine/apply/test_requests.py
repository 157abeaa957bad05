"""How the commits of a request are numbered."""

import pytest

from dmdelta.engine.apply.requests import plan_version

LAST = 0xFFFF


@pytest.mark.parametrize(
    ("applied", "batch", "planned"),
    [
        (None, 5, (5, True)),
        (4 << 16 | LAST, 5, (5, True)),
        (5 << 16 | 2, 5, (5, True)),
        (5 << 16 | 2, 7, (7, True)),
        (5 << 16 | 2, 4, (5, False)),
        (5 << 16 | LAST, 4, (6, False)),
        (6 << 16, 6, (6, True)),
    ],
)
def test_versions_continue_those_of_an_interrupted_turn(applied, batch, planned):
    """A request that ends before the interrupted turn would have ended is a part of it."""
    assert plan_version(applied, batch) == planned
