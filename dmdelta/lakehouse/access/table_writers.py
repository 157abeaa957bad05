"""Keeps Spark and delta-rs from writing one table at the same time in this process.

delta-rs creates a commit file only if it does not exist. Spark's local log store checks and then renames, so a commit
of delta-rs in between would be lost. Several of Spark's writers may write at once: its log store serializes them.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

_CHANGED = threading.Condition()
_SPARK = Counter[str]()
"""The number of Spark's writers by table."""
_DELTA_RS = set[str]()


@contextmanager
def spark_writes(table: str) -> Iterator[None]:
    """Spark may write the table (its SQL identifier) during the block; waits until delta-rs has committed."""
    with _CHANGED:
        _CHANGED.wait_for(lambda: table not in _DELTA_RS)
        _SPARK[table] += 1
    try:
        yield
    finally:
        with _CHANGED:
            _SPARK[table] -= 1


@contextmanager
def delta_rs_writes(table: str) -> Iterator[bool]:
    """Yields whether delta-rs may write the table during the block: no other writer does. Does not wait."""
    with _CHANGED:
        free = not _SPARK[table] and table not in _DELTA_RS
        if free:
            _DELTA_RS.add(table)
    try:
        yield free
    finally:
        if free:
            with _CHANGED:
                _DELTA_RS.remove(table)
                _CHANGED.notify_all()
