"""Every error that dmdelta raises, grouped by the operator's reaction.

DmdeltaError
├─ ConfigError                     fix the spec                                    exit 2
├─ SourceError                     fix the server, the account or the network      exit 3
│  ├─ SourceUnavailable *          the server does not answer
│  ├─ StructureChanged             a table has another structure than its snapshot was planned with
│  ├─ ServerChanged                another server answers than the one on which a snapshot was planned
│  ├─ PositionLost                 purged, renumbered or another history
│  ├─ CorruptBinlog                checksum, truncation, gap between segments
│  └─ UnsupportedEvent             statement format, incident, unknown event type
├─ SchemaError                     fix the table's structure                       exit 4
│  ├─ UnknownSchema                no column names for a table map
│  └─ UnsupportedSchemaChange      a DDL that silver cannot apply
├─ LakehouseError                  fix storage, permissions or a table             exit 5
│  ├─ CommitConflict *             another writer committed first
│  ├─ ForeignTable                 the table at the path belongs to something else
│  ├─ Fenced                       another runner of this task is active
│  │  └─ HeldByCommand             a command works on the task's tables
│  └─ UnsupportedTable             only Spark can access the table
├─ QualityError                    check the data                                  exit 6
│  ├─ NotLanded                    bronze does not reach the source's position in time
│  └─ NotReadable                  a table cannot be read as of a position
├─ SinkError                       fix the sink's target, or what it refuses       exit 7
│  └─ TargetUnavailable *          the target does not answer
└─ StageFailed                     a stage ended with an unexpected error          exit 1

`*` also Retryable: the runner retries only these; after the last retry the exit code is 75.

Errors are also raised on Spark's executors, from where only their text reaches the driver. `to_wire` formats an error
as one line that `from_wire` finds in any text, so that the driver raises the same error.
"""

import errno
import json
import re
import traceback
from contextlib import suppress
from typing import Any

EXIT_RETRIES_SPENT = 75
_HINTS = {
    errno.ENOSPC: "free disk space, then run again: no data is lost",
    errno.EDQUOT: "raise the account's quota, then run again: no data is lost",
    errno.EACCES: "grant write permission to the account that runs dmdelta, then run again: no data is lost",
    errno.EPERM: "grant write permission to the account that runs dmdelta, then run again: no data is lost",
    errno.EROFS: "remount the read-only file system as writable, then run again: no data is lost",
    errno.EMFILE: "raise the limit of open files (ulimit -n), then run again: no data is lost",
}
"""The next step for the operator, by the operating system's error."""


class DmdeltaError(Exception):
    """Message first and nothing positional after it, so that every error can be pickled.

    Args:
        message: what happened, including the object that it happened to.
        hint: the next step for the operator, a command if there is one.
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
    """The spec is invalid: fix it."""

    exit_code = 2


class SourceError(DmdeltaError):
    """The source cannot be read in its current state."""

    exit_code = 3


class SourceUnavailable(SourceError, Retryable):
    """The server does not answer: retried with back-off."""


class StructureChanged(SourceError):
    """A table no longer has the structure with which its snapshot was planned."""


class ServerChanged(SourceError):
    """Another server answers than the one on which a snapshot was planned."""


class PositionLost(SourceError):
    """The position to continue from is not on the server: purged, renumbered, or another history."""


class CorruptBinlog(SourceError):
    """Bytes that are not a whole, checksummed, gapless binlog."""


class UnsupportedEvent(SourceError):
    """An event that cannot be turned into rows without loss."""


class SchemaError(DmdeltaError):
    """The structure of a table prevents progress."""

    exit_code = 4


class UnknownSchema(SchemaError):
    """No column names are known for a table map."""


class UnsupportedSchemaChange(SchemaError):
    """A DDL that silver cannot apply."""


class LakehouseError(DmdeltaError):
    """An operation on Delta tables or their storage failed."""

    exit_code = 5


class CommitConflict(LakehouseError, Retryable):
    """Another writer committed first: refresh and retry."""


class ForeignTable(LakehouseError):
    """The Delta table at the path does not belong to this task."""


class Fenced(LakehouseError):
    """Another runner of the same task is active: this one stops."""


class HeldByCommand(Fenced):
    """A command has excluded all runs of the task. A run that it paused retries until the command has ended."""


class UnsupportedTable(LakehouseError):
    """The table has a feature of Delta that delta-rs does not support: Spark can access it."""


class QualityError(DmdeltaError):
    """The data does not meet its expectations."""

    exit_code = 6


class NotLanded(QualityError):
    """Bronze does not reach the source's position in time: no table can be compared."""


class NotReadable(QualityError):
    """A table cannot be read as of a position. The message has the reason, `readable` the last position at which it can
    be.
    """


class SinkError(DmdeltaError):
    """An operation on the sink's target failed."""

    exit_code = 7


class TargetUnavailable(SinkError, Retryable):
    """The target does not answer, or requests a retry: retried with back-off."""


class StageFailed(DmdeltaError):
    """A stage ended with an unexpected error."""


def as_ours(error: BaseException, what: str) -> DmdeltaError:
    """The error that ended `what`, as a DmdeltaError: itself, or the operating system's error, or its type and
    location.
    """
    if isinstance(error, DmdeltaError):
        return error
    if isinstance(error, OSError) and error.errno is not None:
        hint = os_hint(error.errno) or "fix the cause, then run again: no data is lost"
        failure = StageFailed(f"{what} failed: {loggable(error)}", hint=hint)
    else:
        # Type and location only: the message may quote a row.
        frames = traceback.extract_tb(error.__traceback__)
        where = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        failure = StageFailed(
            f"{what} failed: {type(error).__name__}{where}",
            hint="run again; if it happens again, report it to the project",
        )
    failure.__cause__ = error
    return failure


def loggable(error: BaseException) -> str:
    """The text of an error that a log may have: of a foreign one, only the operating system's reason and file.

    Any other text may quote a row.
    """
    if isinstance(error, DmdeltaError):
        return str(error)
    if isinstance(error, OSError) and error.errno is not None:
        return f"{error.strerror}: {error.filename}" if error.filename is not None else str(error.strerror)
    return ""


def os_hint(number: int) -> str | None:
    """The next step for the operating system's error with this number; None if none is known."""
    return _HINTS.get(number)


_WIRE = "dmdelta-error:"


def all_errors() -> dict[str, type[DmdeltaError]]:
    """Every class of the tree by its name."""
    errors: dict[str, type[DmdeltaError]] = {}
    pending: list[type[DmdeltaError]] = [DmdeltaError]
    while pending:
        kind = pending.pop()
        errors[kind.__name__] = kind
        pending.extend(kind.__subclasses__())
    return errors


def to_wire(error: DmdeltaError) -> str:
    """One line of text from which `from_wire` restores the error."""
    body = {"kind": type(error).__name__, "message": error.message, "hint": error.hint, "context": error.context}
    return f"{_WIRE}{json.dumps(body, default=str)}"


def from_wire(text: str) -> DmdeltaError | None:
    """The first error that `to_wire` wrote into `text`, or None."""
    for match in re.finditer(_WIRE, text):
        # The match may be a truncated line, or source code in a traceback: try the next one.
        with suppress(ValueError, KeyError, TypeError):
            body, _ = json.JSONDecoder().raw_decode(text, match.end())
            return all_errors()[body["kind"]](body["message"], hint=body["hint"], **body["context"])
    return None
