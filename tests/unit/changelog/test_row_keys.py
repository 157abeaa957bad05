"""Which keys are equal."""

from dataclasses import replace

import pytest

from dmdelta.changelog.row_keys import has_key_of
from dmdelta.model.schema import Column, TableSchema

PAIR = TableSchema("d", "t", (Column("a", "int"), Column("b", "int")), ("a", "b"))


@pytest.mark.parametrize(
    ("key", "same"),
    [(("a", "b"), True), (("A", "b"), True), (("b", "a"), False), (("a", "c"), False), (("a",), False), ((), False)],
)
def test_structures_with_the_same_key(key, same):
    """The same columns in the same order, whatever their letter case."""
    assert has_key_of(PAIR, replace(PAIR, primary_key=key)) is same
