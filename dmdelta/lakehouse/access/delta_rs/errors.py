"""The boundary to delta-rs' exceptions: each is converted once to a dmdelta error."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from deltalake.exceptions import CommitFailedError, DeltaError

from dmdelta.errors import LakehouseError, UnsupportedTable, os_hint
from dmdelta.lakehouse.access.boundary import conflict, raising, reason

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
    with raising(lambda error: _translated(error, table, doing)):
        yield


def _translated(error: Exception, table: str, doing: str) -> LakehouseError:
    """The error for one of delta-rs: its class, and the operating system's reason if there is one."""
    if isinstance(error, DeltaError) and _UNSUPPORTED.search(str(error)):
        return UnsupportedTable(
            f"{doing} {table} failed: the table has a feature that delta-rs does not support", hint=_HINT
        )
    if isinstance(error, CommitFailedError):
        return conflict(table)
    found = _OS_ERROR.search(str(error))
    number = error.errno if isinstance(error, OSError) else int(found[1]) if found else None
    hint = os_hint(number) if number is not None else None
    general = "check that the lakehouse exists, is reachable, and that this account has read and write permission"
    return LakehouseError(f"{doing} {table} failed: {reason(type(error).__name__, number)}", hint=hint or general)
