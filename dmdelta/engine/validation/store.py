"""The table `dm_meta.<task>_validator`: the validator's position, pending rows and errors, by source.

Each flush appends its rows. At times one writes the whole state, and the rows of progress and of pending rows that
earlier flushes have left are removed, so that the table stays small. Errors stay until they are cleared.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from enum import Enum
from functools import partial
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812 - Spark's convention

from dmdelta.lakehouse.access.interface import one_of
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.metadata_table import COMPACT_EVERY, MetadataRow, MetadataTable, TaskMetadata
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.quality.pending import ErrorState, PendingRow
from dmdelta.quality.reconcile import Kind
from dmdelta.quality.row_keys import RowKey

VALIDATOR = MetadataTable(
    "validator",
    {
        "id": T.StringType(),
        "entry": T.StringType(),
        "schema_name": T.StringType(),
        "table_name": T.StringType(),
        "row_key": T.StringType(),
        "key_parts": T.ArrayType(T.StringType()),
        "kind": T.StringType(),
        "state": T.StringType(),
        "row_values": T.StringType(),
        "since": T.TimestampType(),
        "position": T.StringType(),
        "progress": T.StringType(),
        "flush_id": T.LongType(),
        "updated_at": T.TimestampType(),
    },
    keys=("id", "entry", "schema_name", "table_name", "row_key"),
)


RowId = tuple[TableName, str]
"""A table and the text of a row's key."""


class Entry(str, Enum):
    """The kind of a row of the table."""

    PROGRESS = "progress"
    PENDING = "pending"
    ERROR = "error"


def newest_entries(table: TaskMetadata, source_id: str | None, entries: Collection[Entry]) -> list[MetadataRow]:
    """The newest row of each key of a source, or of all; empty if the table does not exist.

    Raises:
        LakehouseError: the table cannot be read.
    """
    kinds = one_of("entry", *(entry.value for entry in entries))
    return table.newest(kinds) if source_id is None else table.newest(kinds, one_of("id", source_id))


@dataclass(frozen=True, slots=True)
class RowError:
    """A row that has differed for longer than the validator's delay.

    Attributes:
        error: the error's id.
        key: the canonical text of its key (`dmdelta.quality.canonical`).
        values: the source's and silver's text, by differing column; None if that side has no row.
        since: when it was first found to differ.
    """

    error: str
    source_id: str
    schema: str
    table: str
    key: str
    kind: Kind
    state: ErrorState
    since: datetime
    values: Mapping[str, Sequence[str | None]] = field(default_factory=dict)


def error_id(source_id: str, at: RowId) -> str:
    """The id of an error: the same whenever the same row differs."""
    (schema, table), key = at
    text = json.dumps([source_id, schema, table, key])
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def read_errors(table: TaskMetadata, source_id: str | None = None) -> list[RowError]:
    """The errors of a source, or of all, sorted by table and key.

    Raises:
        LakehouseError: the table cannot be read.
    """
    errors = [_error(row) for row in newest_entries(table, source_id, (Entry.ERROR,))]
    return sorted(errors, key=lambda error: (error.source_id, error.schema, error.table, error.key))


def set_states(table: TaskMetadata, errors: Iterable[RowError], state: ErrorState) -> list[RowError]:
    """Write an operator's decision on errors. Returns the changed errors.

    Raises:
        LakehouseError: the table cannot be written.
    """
    changed = [replace(error, state=state) for error in errors]
    if changed:
        table.append([error_row(error) for error in changed])
    return changed


def remove_errors(table: TaskMetadata, errors: Collection[RowError]) -> None:
    """Delete errors, including the stored values of their rows.

    Raises:
        CommitConflict: the task wrote to the table meanwhile. LakehouseError: it cannot be written.
    """
    for source_id, *name in sorted({(error.source_id, error.schema, error.table) for error in errors}):
        among = [error for error in errors if [error.source_id, error.schema, error.table] == [source_id, *name]]
        table.delete(partial(_are_errors, among))


def _are_errors(errors: Sequence[RowError], literal: Callable[[str], str]) -> str:
    """The condition for the rows of errors of one table."""
    one, keys = errors[0], ", ".join(literal(error.key) for error in errors)
    return (
        f"entry = {literal(Entry.ERROR.value)} AND id = {literal(one.source_id)} "
        f"AND schema_name = {literal(one.schema)} AND table_name = {literal(one.table)} AND row_key IN ({keys})"
    )


def count_errors(errors: Iterable[RowError]) -> dict[ErrorState, int]:
    """The number of errors, by state."""
    states = [error.state for error in errors]
    return {state: states.count(state) for state in ErrorState}


def _error(row: MetadataRow) -> RowError:
    at = ((row["schema_name"], row["table_name"]), row["row_key"])
    return RowError(
        error=error_id(row["id"], at),
        source_id=row["id"],
        schema=row["schema_name"],
        table=row["table_name"],
        key=row["row_key"],
        kind=Kind(row["kind"]),
        state=ErrorState(row["state"]),
        since=row["since"],
        values=json.loads(row["row_values"] or "{}"),
    )


def error_row(error: RowError) -> dict[str, Any]:
    """An error as a row of the validator's table."""
    values = {name: list(pair) for name, pair in error.values.items()}
    return {
        "id": error.source_id,
        "entry": Entry.ERROR.value,
        "schema_name": error.schema,
        "table_name": error.table,
        "row_key": error.key,
        "kind": error.kind.value,
        "state": error.state.value,
        "since": error.since,
        "row_values": json.dumps(values, ensure_ascii=False),
        "updated_at": datetime.now(timezone.utc),
    }


_SETTLED = "settled"


@dataclass(frozen=True, slots=True)
class ValidatorProgress:
    """The validator's progress for one source.

    Attributes:
        position: changes before it were compared; None before the first.
        mode: `fast` or `full`.
        validated: number of rows that were compared and are equal, since the validator's first start.
        skipped: tables (`schema.table`) and columns that are not compared, with the reason.
        left: paused tables, with the position of the first change that was not compared.
        trouble: why there is no progress; None if there is.
        by_table: `validated` for each table (`schema.table`); tables without changes are missing.
    """

    position: Position | None = None
    mode: str = "full"
    validated: int = 0
    skipped: Mapping[str, str] = field(default_factory=dict)
    left: Mapping[TableName, Position] = field(default_factory=dict)
    trouble: str | None = None
    by_table: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> str:
        left = [[*name, str(position)] for name, position in self.left.items()]
        fields: dict[str, Any] = {"position": str(self.position) if self.position else None, "mode": self.mode}
        fields |= {"validated": self.validated, "skipped": dict(self.skipped), "left": left, "trouble": self.trouble}
        fields["by_table"] = dict(self.by_table)
        return json.dumps(fields, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "ValidatorProgress":
        fields = json.loads(text)
        left = {(schema, table): Position.parse(position) for schema, table, position in fields.pop("left")}
        position = fields.pop("position")
        return cls(position=Position.parse(position) if position else None, left=left, **fields)


class ValidatorStore:
    """The table's rows of one source. Not thread-safe."""

    def __init__(self, spark: SparkSession, lakehouse: Lakehouse, task: str, source_id: str) -> None:
        self._source_id = source_id
        self._table = VALIDATOR.of(spark, lakehouse, task)
        self._pending: dict[RowId, PendingRow] = {}
        self._flush_id = 0

    def open(self) -> tuple[ValidatorProgress, dict[RowId, PendingRow]]:
        """Create the table if it does not exist. Returns the state of the source's last flush.

        Raises:
            ForeignTable: the existing table belongs to another task.
            LakehouseError: the table cannot be created or read.
        """
        self._table.create()
        entries = newest_entries(self._table, self._source_id, (Entry.PROGRESS, Entry.PENDING))
        progress = next((row for row in entries if row["entry"] == Entry.PROGRESS.value), None)
        rows = [row for row in entries if row["entry"] == Entry.PENDING.value and row["state"] != _SETTLED]
        self._pending = {((row["schema_name"], row["table_name"]), row["row_key"]): _pending(row) for row in rows}
        if progress is None:
            return ValidatorProgress(), dict(self._pending)
        self._flush_id = progress.get("flush_id") or 0  # None: an older version wrote it
        return ValidatorProgress.from_json(progress["progress"]), dict(self._pending)

    def flush(
        self, progress: ValidatorProgress, pending: Mapping[RowId, PendingRow], errors: Sequence[RowError]
    ) -> None:
        """Write progress, changes of the pending rows, and errors, in one commit; at times also the other pending rows.

        Raises:
            LakehouseError: the commit failed.
        """
        self._flush_id += 1
        is_whole = self._flush_id % COMPACT_EVERY == 0
        rows = [self._row(Entry.PROGRESS, (("", ""), ""), progress=progress.to_json())]
        for at, row in pending.items():
            if is_whole or self._pending.get(at) != row:
                columns = {"key_parts": list(row.key.parts), "kind": row.kind.value, "since": row.since}
                rows.append(self._row(Entry.PENDING, at, state="pending", position=str(row.position), **columns))
        rows += [self._row(Entry.PENDING, at, state=_SETTLED) for at in self._pending.keys() - pending.keys()]
        rows += [error_row(error) for error in errors]
        self._table.append(rows)
        self._pending = dict(pending)
        if is_whole:
            self._shorten()

    def _shorten(self) -> None:
        """Remove what earlier flushes wrote about progress and pending rows, after one with the whole state; compact.

        Raises:
            LakehouseError: the table cannot be written.
        """

        def is_old(literal: Callable[[str], str]) -> str:
            kinds = ", ".join(literal(entry.value) for entry in (Entry.PROGRESS, Entry.PENDING))
            earlier = f"(flush_id IS NULL OR flush_id < {self._flush_id})"
            return f"id = {literal(self._source_id)} AND entry IN ({kinds}) AND {earlier}"

        self._table.shorten(is_old)

    def publish(self, progress: ValidatorProgress) -> None:
        """Write only the progress.

        Raises:
            LakehouseError: the commit failed.
        """
        rows = [self._row(Entry.PROGRESS, (("", ""), ""), progress=progress.to_json())]
        self._table.append(rows)

    def counts(self) -> dict[ErrorState, int]:
        """The number of errors, by state.

        Raises:
            LakehouseError: the table cannot be read.
        """
        return count_errors(read_errors(self._table, self._source_id))

    def states(self) -> dict[str, ErrorState]:
        """The state of each error, by its id.

        Raises:
            LakehouseError: the table cannot be read.
        """
        return {error.error: error.state for error in read_errors(self._table, self._source_id)}

    def _row(self, entry: Entry, at: RowId, **columns: Any) -> dict[str, Any]:
        (schema, table), key = at
        name = {"id": self._source_id, "entry": entry.value, "schema_name": schema, "table_name": table}
        at_once = {"flush_id": self._flush_id, "updated_at": datetime.now(timezone.utc)}
        return {**name, "row_key": key, **at_once, **columns}


def read_progress(table: TaskMetadata) -> dict[str, tuple[ValidatorProgress, int]]:
    """The progress of each source, with its number of pending rows.

    Raises:
        LakehouseError: the table cannot be read.
    """
    entries = newest_entries(table, None, (Entry.PROGRESS, Entry.PENDING))
    progress = {row["id"]: row["progress"] for row in entries if row["entry"] == Entry.PROGRESS.value}
    pending = [row["id"] for row in entries if row["entry"] == Entry.PENDING.value and row["state"] != _SETTLED]
    return {source: (ValidatorProgress.from_json(text), pending.count(source)) for source, text in progress.items()}


def _pending(row: MetadataRow) -> PendingRow:
    key = RowKey(row["row_key"], tuple(row["key_parts"]))
    return PendingRow(key, Kind(row["kind"]), row["since"], Position.parse(row["position"]))
