"""JSON diffs, applied to documents as the server does."""

from typing import Any

import pytest

from dmdelta.binlog.rows.partial_update import Diff, _changed, parse_path
from dmdelta.binlog.values.variant import KeyDictionary
from dmdelta.errors import CorruptBinlog
from tests.support.jsonb_writer import write_jsonb
from tests.support.variant_reader import read_variant

REPLACE, INSERT, REMOVE = 0, 1, 2


def changed(document: Any, operation: int, path: str, value: Any = None) -> Any:
    """The document after one diff."""
    keys = KeyDictionary(())
    new = b"" if operation == REMOVE else write_jsonb(value)
    return read_variant(_changed(write_jsonb(document), [Diff(operation, parse_path(path), new)], keys), keys.metadata)


@pytest.mark.parametrize(
    ("document", "operation", "path", "value", "result"),
    [
        ({"a": 1}, REPLACE, "$.a", 2, {"a": 2}),
        ({"a": 1}, REPLACE, "$", [2], [2]),
        ({"a": [1, 2, 3]}, REPLACE, "$.a[1]", 9, {"a": [1, 9, 3]}),
        ({"a": [{"b": 1}]}, REPLACE, '$.a[0]."b"', None, {"a": [{"b": None}]}),
        ({"a": 1}, INSERT, "$.b", 2, {"a": 1, "b": 2}),
        ([1, 2], INSERT, "$[0]", 9, [9, 1, 2]),
        ([1, 2], INSERT, "$[1]", 9, [1, 9, 2]),
        ([1, 2], INSERT, "$[2]", 9, [1, 2, 9]),
        ({"a": 1, "b": 2}, REMOVE, "$.a", None, {"b": 2}),
        ([1, 2, 3], REMOVE, "$[1]", None, [1, 3]),
        # A value that is no array is the only element of one.
        ({"a": 1}, REPLACE, "$.a[0]", 2, {"a": 2}),
        (7, REPLACE, "$[0]", 8, 8),
        (7, REPLACE, "$[0][0]", 8, 8),
        ({"a": 1}, INSERT, "$.a[0]", 2, {"a": [2, 1]}),
        ({"a": 1}, INSERT, "$.a[1]", 2, {"a": [1, 2]}),
    ],
)
def test_a_diff(document: Any, operation: int, path: str, value: Any, result: Any) -> None:
    """The results are MySQL's of JSON_REPLACE, JSON_ARRAY_INSERT, JSON_ARRAY_APPEND, JSON_SET and JSON_REMOVE."""
    assert changed(document, operation, path, value) == result


@pytest.mark.parametrize(
    ("document", "operation", "path"),
    [
        ({"a": 1}, REMOVE, "$.b"),
        ({"a": 1}, REPLACE, "$.b.c"),
        ([1], REPLACE, "$[1]"),
        ([1], REPLACE, "$.a"),
        (7, REPLACE, "$[1]"),
        (7, REMOVE, "$[0]"),
        ({"a": 1}, REPLACE, "$.a[0].b"),
    ],
)
def test_a_diff_that_does_not_fit(document: Any, operation: int, path: str) -> None:
    """The document before is another one than the server had."""
    with pytest.raises(CorruptBinlog, match="does not fit"):
        changed(document, operation, path, 1)
