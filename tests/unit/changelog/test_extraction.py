"""SQL for columns, keys and ranges."""

import pytest

from dmdelta.changelog.extraction import extracted, variant_path
from dmdelta.changelog.ranges import within
from dmdelta.model.position import Position
from dmdelta.model.schema import Column


@pytest.mark.parametrize(
    ("name", "path"),
    [("a b", "$.a b"), ("a.b", "$['a.b']"), ("a'[b", '$["a\'[b"]'), ("a?b", "$.a?b"), ("a?.b", None), ("ü`", "$.ü`")],
)
def test_variant_path(name, path):
    """A name either has a path, or is known to have none."""
    assert variant_path(name) == path


def test_name_without_a_path():
    """A name that no path can express is looked up in a map."""
    assert extracted("after", Column("a?.b", "int")) == (
        "variant_get(CAST(after AS MAP<STRING, VARIANT>)['a?.b'], '$', 'INT')"
    )


def test_range_across_epochs():
    """A range is bounded by literals on both sides, within one epoch or across several."""
    one, two = Position(1, "b.000001", 4), Position(2, "b.000002", 9)
    assert within(one, Position(1, "b.000001", 9)) == f"epoch = 1 AND seq >= {one.seq} AND seq < {one.seq + 5}"
    assert within(one, two) == (
        f"epoch BETWEEN 1 AND 2 AND (epoch > 1 OR seq >= {one.seq}) AND (epoch < 2 OR seq < {two.seq})"
    )
