"""The protocol of the control socket: one line of JSON per request, one line of JSON per answer.

    {"version": 1, "request": {"command": "pause"}}
    {"version": 1, "result": {"task": "shop", "state": "paused", "process": "host:4711"}}
    {"version": 1, "error": {"kind": "ConfigError", "message": "…", "hint": "…", "context": {}}}

A request with another version, an unknown command, a missing or unknown field, or more than `MAX_REQUEST_BYTES` is
answered with an error and has no effect.
"""

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dmdelta.engine.control.state import Request
from dmdelta.errors import ConfigError, DmdeltaError, StageFailed, all_errors

VERSION: Literal[1] = 1
MAX_REQUEST_BYTES = 1 << 20
"""Including the end of the line."""


class _Record(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        defer_build=True,  # a client needs the validator of one command only
    )


class ChangeState(_Record):
    """Pause, resume or stop the task; answered once it is in the requested state."""

    command: Literal[Request.PAUSE, Request.RESUME, Request.STOP]


class ReadStatus(_Record):
    """The status of the task (`schemas/status.schema.json`)."""

    command: Literal["status"] = "status"


class Update(_Record):
    """Apply settings to the running task."""

    command: Literal["update"] = "update"
    settings: str
    """`RunSettings.to_json`."""


class TakeSnapshot(_Record):
    """Read tables from their sources again."""

    command: Literal["snapshot"] = "snapshot"
    tables: list[str]
    """`schema.table`, with the names at the source."""


class ListOperators(_Record):
    """The operator overrides in effect."""

    command: Literal["binlog list"] = "binlog list"


class DecideOperator(_Record):
    """Record or remove an operator override."""

    command: Literal["binlog"] = "binlog"
    source: str | None
    """May be null for a task of one source."""
    position: str
    verb: Literal["skip", "replace", "inject"] | None
    """Null removes an override."""
    statements: list[str] = []


class ListLocks(_Record):
    """The waiting shard DDL locks."""

    command: Literal["shard-ddl-lock list"] = "shard-ddl-lock list"


class Unlock(_Record):
    """Decide on a shard DDL lock."""

    command: Literal["shard-ddl-lock unlock"] = "shard-ddl-lock unlock"
    lock: str
    action: Literal["exec", "skip"]
    owner: str | None = None


class ShowCheckpoint(_Record):
    """The newest flushed row of each source and table."""

    command: Literal["checkpoint show"] = "checkpoint show"


class ReadRelay(_Record):
    """The contents of the relay folders."""

    command: Literal["relay status"] = "relay status"


class ReadValidator(_Record):
    """The progress of the validator."""

    command: Literal["validate status"] = "validate status"


Command = (
    ChangeState
    | ReadStatus
    | Update
    | TakeSnapshot
    | ListOperators
    | DecideOperator
    | ListLocks
    | Unlock
    | ShowCheckpoint
    | ReadRelay
    | ReadValidator
)


class RequestLine(_Record):
    """A request."""

    version: Literal[1] = VERSION
    request: Annotated[Command, Field(discriminator="command")]


class WireError(_Record):
    """An error of `dmdelta.errors`."""

    kind: str
    message: str
    hint: str | None = None
    context: dict[str, Any] = {}

    @classmethod
    def of(cls, error: DmdeltaError) -> "WireError":
        context = {key: str(value) for key, value in error.context.items()}
        return cls(kind=type(error).__name__, message=error.message, hint=error.hint, context=context)

    def restored(self) -> DmdeltaError:
        """The error; a StageFailed for a kind that this version does not know."""
        kind = all_errors().get(self.kind, StageFailed)
        return kind(self.message, hint=self.hint, **self.context)


class AnswerLine(_Record):
    """An answer: a result, or an error."""

    version: int = VERSION
    result: Any = None
    error: WireError | None = None


def request_line(command: Command) -> bytes:
    """A command as a line; `RequestLine` without building the validators of all commands."""
    return json.dumps({"version": VERSION, "request": command.model_dump(mode="json")}).encode() + b"\n"


def parse_request(line: bytes) -> Command:
    """The command in a line.

    Raises:
        ConfigError: it is not a request of this version.
    """
    if len(line) > MAX_REQUEST_BYTES:
        raise ConfigError(f"a request is longer than {MAX_REQUEST_BYTES:,} bytes", hint="send fewer tables at a time")
    try:
        return RequestLine.model_validate_json(line).request
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the line"
        raise ConfigError(
            f"this is not a request of version {VERSION}: {where}: {first['msg']}",
            hint="use the `dmdelta` command of the version that runs the task",
        ) from None
