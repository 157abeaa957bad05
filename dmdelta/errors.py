"""Every error that dmdelta raises, grouped by what the operator does about it.

DmdeltaError
├─ ConfigError                     fix the spec                                    exit 2
├─ SourceError                     fix the server, the account or the network      exit 3
│  ├─ SourceUnavailable *          the server does not answer
│  ├─ PositionLost                 purged, renumbered or another history
│  ├─ CorruptBinlog                checksum, truncation, gap between segments
│  └─ UnsupportedEvent             statement format, incident, unknown event type
├─ SchemaError                     resolve the table's structure                   exit 4
│  ├─ UnknownSchema                no column names for a table map
│  └─ UnsupportedSchemaChange      a DDL that silver cannot follow
├─ LakehouseError                  fix storage, rights or a table                  exit 5
│  ├─ CommitConflict *             another writer committed first
│  ├─ ForeignTable                 a table at our path that is not ours
│  └─ Fenced                       another runner of this task is at work
├─ QualityError                    look at the data                                exit 6
├─ SinkError                       fix the sink's target, or what it refuses       exit 7
│  └─ TargetUnavailable *          the target does not answer
└─ StageFailed                     a stage ended without a known error             exit 1

`*` also Retryable: the runner repeats only these; spent retries exit 75.

Errors are raised on Spark's executors too, where only their text survives the way to the driver.
`to_wire` makes a line that `from_wire` finds again in any text, so that the driver raises the same error.
"""

import errno
import json
import re
import traceback
from contextlib import suppress
from typing import Any

EXIT_RETRIES_SPENT = 75
_MENDS = {
    errno.ENOSPC: "make room there, then run again: nothing is lost",
    errno.EDQUOT: "have the account's quota raised, then run again: nothing is lost",
    errno.EACCES: "give the account that dmdelta runs as the right to write there, then run again: nothing is lost",
    errno.EPERM: "give the account that dmdelta runs as the right to write there, then run again: nothing is lost",
    errno.EROFS: "the file system is mounted read-only: mend that, then run again: nothing is lost",
    errno.EMFILE: "raise the limit of open files (ulimit -n), then run again: nothing is lost",
}
"""What an operator does about what the system refuses."""


class DmdeltaError(Exception):
    """Message first and nothing positional after it, so that every error survives pickling.

    Args:
        message: what happened, naming the thing it happened to.
        hint: the next step for the operator, a command where there is one.
        context: facts as fields (position, table, path); never a password or a row value.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None, **context: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.context = context

    def __str__(self) -> str:
        facts = ", ".join(f"{key}={value}" for key, value in self.context.items())
        return self.message + (f" ({facts})" if facts else "") + (f"\n  hint: {self.hint}" if self.hint else "")


class Retryable:
    """Marker: the same call may succeed later."""


class ConfigError(DmdeltaError):
    """The spec is wrong: fix it."""

    exit_code = 2


class SourceError(DmdeltaError):
    """The source cannot be read as it is."""

    exit_code = 3


class SourceUnavailable(SourceError, Retryable):
    """The server does not answer: retried with back-off."""


class PositionLost(SourceError):
    """The position to continue from is not on the server: purged, renumbered, or another history."""


class CorruptBinlog(SourceError):
    """Bytes that are not a whole, checksummed, gapless binlog."""


class UnsupportedEvent(SourceError):
    """An event that cannot be turned into rows without loss."""


class SchemaError(DmdeltaError):
    """The structure of a table stands in the way."""

    exit_code = 4


class UnknownSchema(SchemaError):
    """No column names are known for a table map."""


class UnsupportedSchemaChange(SchemaError):
    """A DDL that silver cannot follow."""


class LakehouseError(DmdeltaError):
    """Delta tables or their storage refuse."""

    exit_code = 5


class CommitConflict(LakehouseError, Retryable):
    """Another writer committed first: refresh and try again."""


class ForeignTable(LakehouseError):
    """A Delta table stands at our path and is not ours."""


class Fenced(LakehouseError):
    """Another runner of the same task is at work: this one stops."""


class QualityError(DmdeltaError):
    """The data are not as promised."""

    exit_code = 6


class SinkError(DmdeltaError):
    """The target of the sink refuses."""

    exit_code = 7


class TargetUnavailable(SinkError, Retryable):
    """The target does not answer, or asks for another try: retried with back-off."""


class StageFailed(DmdeltaError):
    """A stage ended without saying why."""


def as_ours(error: BaseException, what: str) -> DmdeltaError:
    """The error that `what` has ended with, as one of ours: itself, or what the system refused, or where it came up."""
    if isinstance(error, DmdeltaError):
        return error
    if isinstance(error, OSError) and error.errno is not None:
        place = f": {error.filename}" if error.filename is not None else ""
        hint = _MENDS.get(error.errno, "see to that, then run again: nothing is lost")
        failure = StageFailed(f"{what} failed: {error.strerror}{place}", hint=hint)
    else:
        # By name and place: its text may quote a row.
        frames = traceback.extract_tb(error.__traceback__)
        where = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        failure = StageFailed(
            f"{what} failed: {type(error).__name__}{where}",
            hint="run again; report it to the project if it comes again",
        )
    failure.__cause__ = error
    return failure


_WIRE = "dmdelta-error:"


def all_errors() -> dict[str, type[DmdeltaError]]:
    """Every class of the tree by its name."""
    found: dict[str, type[DmdeltaError]] = {}
    pending: list[type[DmdeltaError]] = [DmdeltaError]
    while pending:
        kind = pending.pop()
        found[kind.__name__] = kind
        pending.extend(kind.__subclasses__())
    return found


def to_wire(error: DmdeltaError) -> str:
    """One line of text from which `from_wire` makes the error again."""
    body = {"kind": type(error).__name__, "message": error.message, "hint": error.hint, "context": error.context}
    return f"{_WIRE}{json.dumps(body, default=str)}"


def from_wire(text: str) -> DmdeltaError | None:
    """The first error that `to_wire` put somewhere into `text`, or None."""
    for found in re.finditer(_WIRE, text):
        # A cut line, or a line of source code in a traceback: the next one may be whole.
        with suppress(ValueError, KeyError, TypeError):
            body, _ = json.JSONDecoder().raw_decode(text, found.end())
            return all_errors()[body["kind"]](body["message"], hint=body["hint"], **body["context"])
    return None
