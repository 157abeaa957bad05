"""Keeps Spark and delta-rs from writing one table at the same time in this process.

delta-rs creates a commit file only if it does not exist. Spark's local log store checks and then renames, so a commit
of delta-rs in between would be lost. Several writers of the same kind may write at once: Spark's log store serializes
them, and delta-rs repeats a commit whose version exists.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

_CHANGED = threading.Condition()
_SPARK, _DELTA_RS = Counter[str](), Counter[str]()
"""The numbers of writers by table."""


@contextmanager
def spark_writes(table: str) -> Iterator[None]:
    """Spark may write the table (its SQL identifier) during the block; waits until delta-rs has committed."""
    with _CHANGED:
        _CHANGED.wait_for(lambda: not _DELTA_RS[table])
        _SPARK[table] += 1
    try:
        yield
    finally:
        with _CHANGED:
            _SPARK[table] -= 1


def writes_alone(table: str) -> bool:
    """Whether the caller, which is in `spark_writes`, is the only writer of the table in this process.

    Files that another one has written and not committed yet look like files that no version needs.
    """
    with _CHANGED:
        return _SPARK[table] == 1


@contextmanager
def delta_rs_writes(table: str) -> Iterator[bool]:
    """Yields whether delta-rs may write the table during the block: Spark does not. Does not wait."""
    with _CHANGED:
        free = not _SPARK[table]
        _DELTA_RS[table] += free
    try:
        yield free
    finally:
        if free:
            with _CHANGED:
                _DELTA_RS[table] -= 1
                _CHANGED.notify_all()
