"""Parts of a table's definition."""

import pytest

from dmdelta.ddl.parse.actions import is_index
from dmdelta.ddl.tokens import tokenize


@pytest.mark.parametrize(
    ("part", "index"),
    [
        ("id INT PRIMARY KEY", False),
        ("`key` INT", False),
        ("`primary` INT", False),
        ("vector INT", False),
        ("vector VECTOR(3)", False),
        ("VECTOR INDEX (v)", True),
        ("VECTOR KEY v (v)", True),
        ("period INT", False),
        ("period VARCHAR(3)", False),
        ("PERIOD FOR SYSTEM_TIME (a, b)", True),
        ("PRIMARY KEY (id)", True),
        ("CONSTRAINT c CHECK (a > 1)", True),
        ("UNIQUE (a)", True),
        ("KEY k (a)", True),
        ("INDEX (a)", True),
        ("FULLTEXT KEY (a)", True),
        ("SPATIAL INDEX (a)", True),
        ("FOREIGN KEY (a) REFERENCES t (a)", True),
        ("CHECK (a > 1)", True),
    ],
)
def test_an_index_is_not_a_column(part, index):
    """Columns may have names that are keywords of an index."""
    assert is_index(tokenize(part)) == index
