"""The table `dm_meta.<task>_control`: commands to a running task, and the states that it reports.

Append-only; the newest row of each kind is in effect. A run executes commands that were sent after its start. The first
writer creates the table: a task that just runs does not.
"""

import json
import uuid
from dataclasses import dataclass
from datetime import datetime, timezone

from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812 - Spark's convention

from dmdelta.engine.control.state import Request, State, process_name
from dmdelta.errors import DmdeltaError
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.metadata_table import MetadataTable, utc
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
        error, hint: why it failed, and the next step.
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

    def publish(self, state: State, error: DmdeltaError | None = None) -> None:
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
        row = self._newest(f"answers = '{update_id}'")
        return None if row is None else UpdateAck(row["settings"], row["process"])

    def asked(self) -> PendingCommands:
        """The newest request of each kind.

        Raises:
            LakehouseError: the table cannot be read.
        """
        # As JSON, because a table created by an older version lacks columns until an update is requested.
        query = f"""
            SELECT max_by(row, at) FILTER (WHERE request <> '{RELOAD}') AS request,
                   max_by(row, at) FILTER (WHERE settings IS NOT NULL AND answers IS NULL) AS update,
                   max_by(row, at) FILTER (WHERE request = '{RELOAD}') AS reload
            FROM (SELECT at, to_json(struct(*)) AS row FROM {self._table.place}),
            LATERAL json_tuple(row, 'request', 'settings', 'answers') AS named(request, settings, answers)
        """
        rows = self._table.query(query)
        request, update, reload = (json.loads(text) if text else None for text in (rows[0] if rows else (None,) * 3))
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
        row = self._newest("state IS NOT NULL")
        if row is None:
            return None
        return TaskState(State(row["state"]), utc(row["at"]), row["process"], row["error"], row["hint"])

    def _newest(self, condition: str) -> T.Row | None:
        return next(iter(self._table.newest(condition)), None)

    def _append(self, fields: dict[str, str | None]) -> str:
        row = {"id": uuid.uuid4().hex, "at": datetime.now(timezone.utc), "process": process_name(), **fields}
        self._table.create()
        self._table.append([row])
        return str(row["id"])
