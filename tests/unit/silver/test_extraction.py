"""SQL of columns, keys and ranges."""

import pytest

from dmdelta.errors import SchemaError
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.silver.extraction import extracted, silver_columns, variant_path
from dmdelta.silver.ranges import within


@pytest.mark.parametrize(
    ("name", "path"),
    [("a b", "$.a b"), ("a.b", "$['a.b']"), ("a'[b", '$["a\'[b"]'), ("a?b", "$.a?b"), ("a?.b", None), ("ü`", "$.ü`")],
)
def test_variant_path(name, path):
    """Every name has a path, or is known to have none."""
    assert variant_path(name) == path


def test_name_without_a_path():
    """A name that no path can say is looked up in a map."""
    assert extracted("after", Column("a?.b", "int")) == (
        "variant_get(CAST(after AS MAP<STRING, VARIANT>)['a?.b'], '$', 'INT')"
    )


@pytest.mark.parametrize("name", ["_dm_version", "_DM_COMMITTED_AT"])
def test_reserved_names(name):
    """A source column with a name of silver's own is an error."""
    with pytest.raises(SchemaError, match="silver keeps for itself"):
        silver_columns(TableSchema("db", "t", (Column(name, "int"),)))


def test_range_across_epochs():
    """A range is bounded by literals on both sides, in one epoch or over several."""
    one, two = Position(1, "b.000001", 4), Position(2, "b.000002", 9)
    assert within(one, Position(1, "b.000001", 9)) == f"epoch = 1 AND seq >= {one.seq} AND seq < {one.seq + 5}"
    assert within(one, two) == (
        f"epoch BETWEEN 1 AND 2 AND (epoch > 1 OR seq >= {one.seq}) AND (epoch < 2 OR seq < {two.seq})"
    )
