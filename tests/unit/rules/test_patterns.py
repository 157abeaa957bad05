"""Name patterns of the spec, for tables."""

import pytest

from dmdelta.rules.patterns import matches_table


@pytest.mark.parametrize(
    ("patterns", "name", "matching"),
    [
        (("a*", "t?"), ("ab", "t1"), True),
        (("a*", "t?"), ("ab", "t"), False),
        (("a*", "t?"), ("b", "t1"), False),
        (("a*", None), ("ab", "any"), True),
        (("a*", None), ("b", "any"), False),
        (("~^a", "~[12]$"), ("ab", "t2"), True),
        (("A", "T"), ("a", "t"), True),
    ],
)
def test_a_table_matches_the_patterns_of_its_schema_and_of_its_name(patterns, name, matching):
    """Without a pattern for the name, every table of the schema matches."""
    assert matches_table(patterns, name, case_sensitive=False) is matching


@pytest.mark.parametrize(("patterns", "matching"), [(("A", "t"), False), (("a", "T"), False), (("a", "t"), True)])
def test_the_case_of_names(patterns, matching):
    """It counts if the spec says so."""
    assert matches_table(patterns, ("a", "t"), case_sensitive=True) is matching
