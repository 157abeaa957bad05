"""The boundary to delta-rs' exceptions: each is converted once to a dmdelta error."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from deltalake.exceptions import CommitFailedError, DeltaError

from dmdelta.errors import CommitConflict, DmdeltaError, Fenced, LakehouseError, UnsupportedTable, os_hint

_OS_ERROR = re.compile(r"(?:os error |\bcode: )(\d+)")

_HINT = "use a command that starts Spark, or remove the feature from the table: ALTER TABLE … DROP FEATURE"
_UNSUPPORTED = re.compile(r"\bUnsupported\b|Max catalog version|Invalid protocol|not yet supported")


@contextmanager
def translated(table: str, doing: str) -> Iterator[None]:
    """Raise a dmdelta error in place of a foreign one, whose text may quote rows: only its class is shown.

    Args:
        table: the SQL identifier of the table being accessed.
        doing: the operation, for example "appending to".
    """
    try:
        yield
    except DmdeltaError:
        raise
    except CommitFailedError as error:
        if _UNSUPPORTED.search(str(error)):
            raise _translated(error, f"{doing} {table}") from error
        raise CommitConflict(
            f"another writer changed {table} at the same time", hint="the commit is retried"
        ) from error
    except Exception as error:
        raise _translated(error, f"{doing} {table}") from error


def fenced(table: str) -> Fenced:
    """The error of a runner that finds another runner's commit in place of its own."""
    return Fenced(
        f"another runner of this task committed to {table}",
        hint="run a task only once: find and stop the other runner, then start again",
    )


def _translated(error: Exception, doing: str) -> LakehouseError:
    """The error for one of delta-rs: its class, and the operating system's reason if there is one."""
    if isinstance(error, DeltaError) and _UNSUPPORTED.search(str(error)):
        return UnsupportedTable(f"{doing} failed: the table has a feature that delta-rs does not support", hint=_HINT)
    found = _OS_ERROR.search(str(error))
    number = error.errno if isinstance(error, OSError) else int(found[1]) if found else None
    reason = type(error).__name__ + (f": {os.strerror(number)}" if number is not None else "")
    hint = os_hint(number) if number is not None else None
    general = "check that the lakehouse exists, is reachable, and that this account has read and write permission"
    return LakehouseError(f"{doing} failed: {reason}", hint=hint or general)
