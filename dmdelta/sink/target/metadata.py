"""The sink's own tables on the target: the owner, what was executed after the checkpoint, and the checkpoint.

`<task>_sink_owner` is the fence: each transaction of a worker locks its own row there and checks the owner; a new run
takes over all rows, which waits for transactions in flight. So no transaction of an older run commits after a takeover,
also on TiDB, where a shared lock would have no effect; and workers never wait for each other. A user-level lock
(GET_LOCK) would be released with its own connection while the workers' connections are still open.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pymysql

from dmdelta.errors import Fenced
from dmdelta.model.mysql_sql import quoted_name
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.sink.execution_log import ExecutedEvents
from dmdelta.sink.plan.checkpoint import Checkpoint
from dmdelta.sink.target.checkpoint_table import MISSING, NAME, CheckpointTable, SourceTables
from dmdelta.sink.target.connection import ask, code_of, execute

if TYPE_CHECKING:
    from pymysql.connections import Connection

FLUSHER = -1
"""The flusher's row in the owner table; in the records, the marker that they are complete."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The state of an earlier run.

    Attributes:
        proven: the records of what it executed are complete.
        reloaded: the epoch of the newest ad-hoc snapshot whose rows the target has, by source table.
    """

    checkpoint: Checkpoint | None
    executed: ExecutedEvents
    proven: bool
    reloaded: dict[TableName, int]


class Metadata(SourceTables):
    """The tables of one source of a task. Raises PyMySQL's errors."""

    __slots__ = ()

    @property
    def owner(self) -> str:
        return self.named("sink_owner")

    @property
    def executed(self) -> str:
        return self.named("sink_executed")

    @property
    def reloads(self) -> str:
        return self.named("sink_reloads")

    @property
    def points(self) -> CheckpointTable:
        return CheckpointTable(self.schema, self.task, self.source_id, self.run)

    def create(self, connection: "Connection[Any]") -> None:
        """Create the tables if they do not exist."""
        execute(connection, f"CREATE DATABASE IF NOT EXISTS {quoted_name(self.schema)}")
        execute(
            connection,
            f"CREATE TABLE IF NOT EXISTS {self.owner} "
            f"(source_id {NAME}, worker INT NOT NULL, run {NAME}, PRIMARY KEY (source_id, worker))",
        )
        execute(
            connection,
            f"CREATE TABLE IF NOT EXISTS {self.executed} (source_id {NAME}, run {NAME}, worker INT NOT NULL, "
            "ordinal BIGINT NOT NULL, epoch INT NOT NULL, first_seq BIGINT NOT NULL, last_seq BIGINT NOT NULL, "
            "events MEDIUMBLOB NOT NULL, PRIMARY KEY (source_id, run, worker, ordinal), "
            "KEY passed (source_id, epoch, last_seq))",
        )
        execute(
            connection,
            f"CREATE TABLE IF NOT EXISTS {self.reloads} (source_id {NAME}, cp_schema {NAME}, cp_table {NAME}, "
            "epoch INT NOT NULL, PRIMARY KEY (source_id, cp_schema, cp_table))",
        )
        self.points.create(connection)

    def take_over(self, connection: "Connection[Any]", workers: int) -> None:
        """Make this run the owner; waits for transactions of an older run."""
        execute(connection, f"UPDATE {self.owner} SET run = %s WHERE source_id = %s", (self.run, self.source_id))
        rows = ", ".join(["(%s, %s, %s)"] * (workers + 1))
        values = [part for worker in range(FLUSHER, workers) for part in (self.source_id, worker, self.run)]
        execute(connection, f"INSERT IGNORE INTO {self.owner} VALUES {rows}", values)
        connection.commit()

    def fence(self, connection: "Connection[Any]", worker: int) -> None:
        """Lock this worker's row until the transaction ends.

        Raises:
            Fenced: another run has taken over.
        """
        held = ask(
            connection,
            f"SELECT run FROM {self.owner} WHERE source_id = %s AND worker = %s FOR UPDATE",
            (self.source_id, worker),
        )
        if [run for (run,) in held] != [self.run]:
            raise Fenced(
                f"another sink of this task executes the changes of {self.source_id}",
                hint="run a task once: find and stop the other runner, then start again",
            )

    def record(self, connection: "Connection[Any]", key: tuple[int, int], epoch: int, events: "Encoded") -> None:
        """Record what a transaction executes. `key`: worker and ordinal of the transaction in this run."""
        execute(
            connection,
            f"INSERT INTO {self.executed} VALUES (%s, %s, %s, %s, %s, %s, %s, x'{events.data.hex()}')",
            (self.source_id, self.run, *key, epoch, events.first, events.last),
        )

    def is_recorded(self, connection: "Connection[Any]", worker: int, ordinal: int) -> bool:
        """Whether a transaction of this run has been committed."""
        where = "source_id = %s AND run = %s AND worker = %s AND ordinal = %s"
        select = f"SELECT 1 FROM {self.executed} WHERE {where}"
        return bool(ask(connection, select, (self.source_id, self.run, worker, ordinal)))

    def flush(self, connection: "Connection[Any]", checkpoint: Checkpoint) -> None:
        """Write the checkpoint; the caller commits.

        Raises:
            Fenced: another run has taken over.
        """
        self.fence(connection, FLUSHER)
        self.points.write(connection, checkpoint)

    def drop_passed(self, connection: "Connection[Any]", position: Position) -> None:
        """Delete the records before a checkpoint."""
        execute(
            connection,
            f"DELETE FROM {self.executed} WHERE source_id = %s AND worker >= 0 "
            "AND (epoch < %s OR (epoch = %s AND last_seq < %s))",
            (self.source_id, position.epoch, position.epoch, position.seq),
        )

    def mark_reloaded(self, connection: "Connection[Any]", epochs: Mapping[TableName, int]) -> None:
        """Record that the target has the rows of an ad-hoc snapshot; the caller commits.

        Args:
            epochs: the snapshot's epoch, by source table.

        Raises:
            Fenced: another run has taken over.
        """
        self.fence(connection, FLUSHER)
        rows = ", ".join(["(%s, %s, %s, %s)"] * len(epochs))
        values = [value for name, epoch in epochs.items() for value in (self.source_id, *name, epoch)]
        execute(connection, f"REPLACE INTO {self.reloads} VALUES {rows}", values)

    def read_reloaded(self, connection: "Connection[Any]") -> dict[TableName, int]:
        """The epoch of the newest ad-hoc snapshot whose rows the target has, by source table."""
        query = f"SELECT cp_schema, cp_table, epoch FROM {self.reloads} WHERE source_id = %s"
        try:
            rows = ask(connection, query, (self.source_id,))
        except pymysql.err.MySQLError as error:
            if code_of(error) not in MISSING:
                raise
            return {}  # only an earlier release has run
        return {(schema, table): epoch for schema, table, epoch in rows}

    def mark_whole(self, connection: "Connection[Any]") -> None:
        """Declare that from now on everything that is not recorded was not executed."""
        execute(connection, f"DELETE FROM {self.executed} WHERE source_id = %s AND worker < 0", (self.source_id,))
        mark = (self.source_id, self.run, FLUSHER)
        execute(connection, f"INSERT IGNORE INTO {self.executed} VALUES (%s, %s, %s, 0, 0, 0, 0, '')", mark)

    def read(self, connection: "Connection[Any]") -> Stored:
        """The state that the last run stored."""
        executed, proven = ExecutedEvents(), False
        for worker, epoch, last, events in ask(
            connection,
            f"SELECT worker, epoch, last_seq, events FROM {self.executed} WHERE source_id = %s",
            (self.source_id,),
        ):
            if worker == FLUSHER:
                proven = True
            else:
                executed.add(epoch, last, events)
        return Stored(self.points.read(connection), executed, proven, self.read_reloaded(connection))


@dataclass(frozen=True, slots=True)
class Encoded:
    """The recorded events of a transaction; `first` and `last` are where they take effect."""

    first: int
    last: int
    data: bytes
