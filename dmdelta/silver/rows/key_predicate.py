"""The predicate of a `replaceWhere` for integer keys: plain typed literals, by which Delta skips files.

The predicate becomes part of the table's history, so its length is limited, and keys of other types have none.
"""

from collections.abc import Iterator, Sequence

from dmdelta.model.spark_sql import quote

SUFFIXES = {"TINYINT": "Y", "SMALLINT": "S", "INT": "", "BIGINT": "L", "DECIMAL(20,0)": "BD"}
"""The suffix of a literal by the SQL type of an integer key in silver; BIGINT UNSIGNED is a DECIMAL there."""

MAX_PREDICATE_BYTES = 64 << 10

_SHORTEST_RUN = 3
"""Shorter runs of integers are shorter text as single values."""


def plan_key_predicate(column: str, kind: str, keys: Sequence[int]) -> str | None:
    """A condition (SQL) that exactly the `keys` fulfil; None if it would be too long, or if there are no keys.

    Args:
        column: the name of the key column.
        kind: its SQL type, one of SUFFIXES.
        keys: sorted and distinct.
    """
    name, suffix = quote(column), SUFFIXES[kind]
    singles, terms = list[str](), list[str]()
    length = len(name.encode()) + len(" IN ()")
    for first, last in _runs(keys):
        if last - first + 1 < _SHORTEST_RUN:
            text = ",".join(f"{key}{suffix}" for key in range(first, last + 1))
            singles.append(text)
            length += len(text) + 1
        else:
            text = f"{name} BETWEEN {first}{suffix} AND {last}{suffix}"
            terms.append(text)
            length += len(text.encode()) + len(" OR ")
        if length > MAX_PREDICATE_BYTES:
            return None
    if singles:
        terms.append(f"{name} IN ({','.join(singles)})")
    return " OR ".join(terms) or None


def _runs(keys: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first and last of each maximal run of consecutive integers."""
    if not keys:
        return
    first = last = keys[0]
    for key in keys[1:]:
        if key != last + 1:
            yield first, last
            first = key
        last = key
    yield first, last
