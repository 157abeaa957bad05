"""The boundary to the exceptions of Spark, Delta and delta-rs: what both implementations share."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dmdelta.errors import CommitConflict, DmdeltaError, Fenced


@contextmanager
def raising(translate: Callable[[Exception], DmdeltaError]) -> Iterator[None]:
    """Raise the dmdelta error that `translate` returns in place of a foreign one."""
    try:
        yield
    except DmdeltaError:
        raise
    except Exception as error:
        raise translate(error) from error


def fenced(table: str) -> Fenced:
    """The error of a runner that finds another runner's commit in place of its own."""
    return Fenced(
        f"another runner of this task committed to {table}",
        hint="run a task only once: find and stop the other runner, then start again",
    )


def conflict(table: str) -> CommitConflict:
    """The error of a writer that finds another writer's commit before its own."""
    return CommitConflict(
        f"another writer changed {table} at the same time",
        hint="a running task retries automatically; otherwise run the command again",
    )


def reason(kind: str, number: int | None) -> str:
    """Why a foreign error was raised, without its text, which may quote rows: its class, and the system's reason.

    Args:
        number: the operating system's error number; None: it is not an error of the system.
    """
    return kind if number is None else f"{kind}: {os.strerror(number)}"
