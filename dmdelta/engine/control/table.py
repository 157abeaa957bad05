"""The table `dm_meta.<task>_control`: commands to a running task, and the states that it reports.

Append-only; the newest row of each kind is in effect. A run executes commands that were sent after its start. The first
writer creates the table: a task that just runs does not.
"""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone

from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812 - Spark's convention

from dmdelta.engine.control.state import Reason, Request, State, process_name
from dmdelta.errors import DmdeltaError
from dmdelta.lakehouse.access.interface import Condition, is_not_null, one_of
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.metadata_table import MetadataRow, MetadataTable
from dmdelta.lakehouse.session import clone_session

CONTROL = MetadataTable(
    "control",
    {
        "id": T.StringType(),
        "at": T.TimestampType(),
        "process": T.StringType(),
        "request": T.StringType(),
        "state": T.StringType(),
        "error": T.StringType(),
        "hint": T.StringType(),
        "settings": T.StringType(),
        "answers": T.StringType(),
    },
    order="at",
)


RELOAD = "reload"
"""A request to read the operator overrides again: separate from the others, so that it replaces none of them."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command and its id."""

    id: str
    request: Request


@dataclass(frozen=True, slots=True)
class Update:
    """Settings to apply (`LiveSettings.to_json`) and the id of the row that requests it."""

    id: str
    settings: str


@dataclass(frozen=True, slots=True)
class PendingCommands:
    """The newest of each kind; None: there is none.

    Attributes:
        reload: the id of the newest request to read the operator overrides again.
    """

    request: Command | None = None
    update: Update | None = None
    reload: str | None = None


@dataclass(frozen=True, slots=True)
class UpdateAck:
    """The answer to an update: the settings in effect since then, and the run's host and process id."""

    settings: str
    process: str


@dataclass(frozen=True, slots=True)
class TaskState:
    """A reported state.

    Attributes:
        process: host and process id of the run.
        error, hint: as in `ReportedState`.
    """

    state: State
    at: datetime
    process: str
    error: str | None
    hint: str | None


class ControlTable:
    """The control table of one task. Has its own session; not thread-safe."""

    def __init__(self, spark: SparkSession, lakehouse: Lakehouse, task: str) -> None:
        self._table = CONTROL.of(clone_session(spark), lakehouse, task)
        self._read: tuple[int, PendingCommands] | None = None
        """The version at which `asked` has read the table, and its result."""

    def ask(self, request: Request) -> None:
        """Send a command.

        Raises:
            ForeignTable: the existing table belongs to another task.
            LakehouseError: the commit failed.
        """
        self._append({"request": request.value})

    def ask_reload(self) -> None:
        """Request that the run reads the operator overrides again.

        Raises:
            ForeignTable: the existing table belongs to another task.
            LakehouseError: the commit failed.
        """
        self._append({"request": RELOAD})

    def publish(self, state: State, error: DmdeltaError | Reason | None = None) -> None:
        """Report the state of the task.

        Raises:
            ForeignTable: the existing table belongs to another task.
            LakehouseError: the commit failed.
        """
        failure = {"error": error.message, "hint": error.hint} if error is not None else {}
        self._append({"state": state.value, **failure})

    def ask_update(self, settings: str) -> str:
        """Request an update of settings; returns the id of the request.

        Raises:
            ForeignTable: the existing table belongs to another task.
            LakehouseError: the commit failed.
        """
        return self._append({"settings": settings})

    def answer(self, update: Update, live_settings: str) -> None:
        """Confirm an update, with the settings that are now in effect.

        Raises:
            LakehouseError: the commit failed.
        """
        self._append({"settings": live_settings, "answers": update.id})

    def answered(self, update_id: str) -> UpdateAck | None:
        """The answer to an update that was requested here; None if there is none yet.

        Raises:
            LakehouseError: the table cannot be read.
        """
        row = self._newest(one_of("answers", update_id))
        return None if row is None else UpdateAck(row["settings"], row["process"])

    def asked(self) -> PendingCommands:
        """The newest request of each kind. Reads the table only if it has changed.

        Raises:
            LakehouseError: the table cannot be read.
        """
        version = self._table.version()
        if self._read is not None and self._read[0] == version:
            return self._read[1]
        asked = self._asked()
        # Looked up before the rows: what has been committed in between is read again.
        self._read = None if version is None else (version, asked)
        return asked

    def _asked(self) -> PendingCommands:
        rows = self._table.rows()
        request = _newest_of(row for row in rows if row.get("request") not in (None, RELOAD))
        reload = _newest_of(row for row in rows if row.get("request") == RELOAD)
        update = _newest_of(row for row in rows if row.get("settings") is not None and row.get("answers") is None)
        return PendingCommands(
            None if request is None else Command(request["id"], Request(request["request"])),
            None if update is None else Update(update["id"], update["settings"]),
            None if reload is None else reload["id"],
        )

    def last_reported(self) -> TaskState | None:
        """The newest state; None if there is none, or no table.

        Raises:
            LakehouseError: the table cannot be read.
        """
        row = self._newest(is_not_null("state"))
        if row is None:
            return None
        return TaskState(State(row["state"]), row["at"], row["process"], row["error"], row["hint"])

    def _newest(self, *conditions: Condition) -> MetadataRow | None:
        return next(iter(self._table.newest(*conditions)), None)

    def _append(self, fields: dict[str, str | None]) -> str:
        row = {"id": uuid.uuid4().hex, "at": datetime.now(timezone.utc), "process": process_name(), **fields}
        self._table.create()
        self._table.append([row])
        return str(row["id"])


def _newest_of(rows: Iterable[MetadataRow]) -> MetadataRow | None:
    return max(rows, key=lambda row: row["at"], default=None)
