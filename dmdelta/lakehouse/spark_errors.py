"""The boundary to Spark's and Delta's exceptions: each is converted once to a dmdelta error."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dmdelta.errors import DmdeltaError, ForeignTable, LakehouseError, StageFailed, from_wire
from dmdelta.lakehouse.access.boundary import conflict, fenced, raising, reason

_CONFLICT = re.compile(
    r"Concurrent\w*Exception|(Metadata|Protocol)ChangedException|DELTA_CONCURRENT_|DELTA_\w+_CHANGED"
)
_ABSENT = re.compile(
    r"DELTA_MISSING_DELTA_TABLE|DELTA_TABLE_NOT_FOUND|DELTA_PATH_DOES_NOT_EXIST|PATH_NOT_FOUND|TABLE_OR_VIEW_NOT_FOUND"
    r"|SCHEMA_NOT_FOUND|DELTA_TABLE_ONLY_OPERATION|is not a Delta table"
)
_OUT_OF_MEMORY = re.compile(r"java\.lang\.OutOfMemoryError|UNABLE_TO_ACQUIRE_MEMORY")
_MORE_MEMORY = "give Spark more memory, for a local session with SPARK_DRIVER_MEMORY=4g, and run again: no data is lost"

_FRAME = re.compile(r'File "(?:[^"]*/dmdelta/([\w./]+\.py)|[^"]*?([\w.]+/[\w.]+\.py))", line (\d+)')
"""A frame of ours from the package on, any other by its folder and file."""
_RAISED = re.compile(r"^(\w+(?:\.\w+)*)(?:$|:(?: \[Errno (\d{1,4})\])?)", re.MULTILINE)


@contextmanager
def wrapped(table: str, doing: str) -> Iterator[None]:
    """Raise a dmdelta error in place of a foreign one.

    Args:
        table: the SQL identifier of the table being accessed.
        doing: the operation, for example "appending to".
    """
    with raising(lambda error: translate(error, table, doing)):
        yield


def translate(error: Exception, table: str, doing: str) -> DmdeltaError:
    """The dmdelta error for a foreign one."""
    text = f"{type(error).__name__} {error}"
    known = from_wire(text)
    if known is not None:
        return known
    if "ConcurrentTransactionException" in text or "DELTA_CONCURRENT_TRANSACTION" in text:
        return fenced(table)
    if _CONFLICT.search(text):
        return conflict(table)
    if "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION" in text or "TABLE_OR_VIEW_ALREADY_EXISTS" in text:
        return ForeignTable(f"{table} contains files that are not a Delta table", hint="move them or choose a new root")
    if "Python worker exited unexpectedly" in text:
        return StageFailed(
            f"a Python worker of Spark died while {doing} {table}",
            hint="it was killed or ran out of memory: see Spark's log above; nothing was committed, run again",
        )
    if _OUT_OF_MEMORY.search(text):
        return StageFailed(f"Spark ran out of memory while {doing} {table}", hint=_MORE_MEMORY)
    # By name: py4j is not installed with the client of Spark Connect.
    if isinstance(error, ConnectionError) or type(error).__name__ == "Py4JNetworkError":
        hint = f"it was killed or ran out of memory: see its log above; {_MORE_MEMORY}"
        return StageFailed(f"the JVM of Spark ended while {doing} {table}", hint=hint)
    hint = "check that the lakehouse exists, is reachable, and that this account has write permission"
    return LakehouseError(f"{doing} {table} failed: {_reason(error)}", hint=hint)


def is_absent(error: Exception) -> bool:
    """Whether the error says that there is no Delta table."""
    return _ABSENT.search(f"{type(error).__name__} {error}") is not None


def _reason(error: Any) -> str:
    """The cause without the row values that Spark's messages may quote: its name, or an I/O error's line."""
    condition = getattr(error, "getCondition", lambda: None)()
    if condition:
        return f"{condition} {_raised(str(error))}".strip()
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    io = next(
        (line for line in lines if re.search(r"java\.(io|nio)\.|hadoop\.|FileSystem|Permission|denied", line)), ""
    )
    return f"{type(error).__name__} {io}".strip()[:300]


def _raised(text: str) -> str:
    """The exception at the end of a Python worker's traceback: its class, its system error, and where it was raised."""
    frames = list(_FRAME.finditer(text))
    if not frames:
        return ""
    found = _RAISED.search(text, frames[-1].end())
    kind, number = found.groups() if found else ("", None)
    what = reason(kind, int(number) if number else None)
    return f"{what} in {frames[-1][1] or frames[-1][2]}, line {frames[-1][3]}".strip()
