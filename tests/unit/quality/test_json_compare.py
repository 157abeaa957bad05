"""Comparing JSON texts by meaning."""

import pytest

from dmdelta.quality.json_compare import same_text


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ('{"a": 1, "bb": [2]}', '{"bb":[2],"a":1}', True),
        ("123456789.0", "1.23456789E8", True),
        ("0.1", "0.10000000000000001", True),
        ("18446744073709551615", "18446744073709551614", False),
        ('"2024-02-29 12:34:56.500000"', '"2024-02-29 12:34:56.5"', True),
        ('"1"', "1", False),
        ("true", "1", False),
        ("[1,2]", "[2,1]", False),
        ('{"a": 1}', '{"a": 1, "b": null}', False),
        ("null", None, False),
        (None, None, True),
    ],
)
def test_documents_are_compared_by_meaning(left, right, same):
    """The order of keys, spaces and the notation of numbers and times do not matter; values and types do."""
    assert same_text(left, right) is same
