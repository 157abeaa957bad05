"""Rows that have differed from the source for too long, and what somebody makes of them."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from enum import Enum
from typing import Any

from pyspark.sql import Row, SparkSession

from dmdelta.engine.validation.validator_table import COLUMNS, Entry, RowId, newest_entries, utc
from dmdelta.lakehouse.metadata_table import metadata_frame
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.spark_sql import literal
from dmdelta.quality.reconcile import Kind


class ErrorState(str, Enum):
    """What somebody has made of an error."""

    NEW = "new"
    IGNORED = "ignored"
    """The row may differ; it stays so when it is found to differ again."""
    RESOLVED = "resolved"
    """It was put right; if it is found to differ again, it is new."""


@dataclass(frozen=True, slots=True)
class RowError:
    """A row that has differed for too long.

    Attributes:
        error: its id.
        key: the canonical text of its key (`dmdelta.quality.canonical`).
        values: by column that differs, the source's and silver's text; None where there is no row.
        since: when it was first seen to differ.
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
    """What an error is called: the same each time that a row differs."""
    (schema, table), key = at
    text = json.dumps([source_id, schema, table, key])
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def read_errors(spark: SparkSession, table: str, source_id: str | None = None) -> list[RowError]:
    """The errors of a source, or of all, by table and key.

    Raises:
        LakehouseError: the table cannot be read.
    """
    found = [_error(row) for row in newest_entries(spark, table, source_id, (Entry.ERROR,))]
    return sorted(found, key=lambda error: (error.source_id, error.schema, error.table, error.key))


def set_states(spark: SparkSession, table: str, errors: Iterable[RowError], state: ErrorState) -> list[RowError]:
    """Write down what somebody has made of errors; those errors as they are now.

    Raises:
        LakehouseError: the table cannot be written.
    """
    changed = [replace(error, state=state) for error in errors]
    if changed:
        with wrapped(table, "appending to"):
            metadata_frame(spark, COLUMNS, [error_row(error) for error in changed]).writeTo(table).append()
    return changed


def remove_errors(spark: SparkSession, table: str, errors: Collection[RowError]) -> None:
    """Remove errors, and with them the values of their rows.

    Raises:
        CommitConflict: the task wrote to the table meanwhile. LakehouseError: it cannot be written.
    """
    for source_id, *name in sorted({(error.source_id, error.schema, error.table) for error in errors}):
        among = [error for error in errors if [error.source_id, error.schema, error.table] == [source_id, *name]]
        schema, keys = literal(name[0]), ", ".join(literal(error.key) for error in among)
        with wrapped(table, "removing errors from"):
            spark.sql(
                f"DELETE FROM {table} WHERE entry = {literal(Entry.ERROR.value)} AND id = {literal(source_id)} "
                f"AND schema_name = {schema} AND table_name = {literal(name[1])} AND row_key IN ({keys})"
            ).collect()


def count_errors(errors: Iterable[RowError]) -> dict[ErrorState, int]:
    """How many there are, by state."""
    states = [error.state for error in errors]
    return {state: states.count(state) for state in ErrorState}


def _error(row: Row) -> RowError:
    at = ((row["schema_name"], row["table_name"]), row["row_key"])
    return RowError(
        error_id(row["id"], at),
        row["id"],
        row["schema_name"],
        row["table_name"],
        row["row_key"],
        Kind(row["kind"]),
        ErrorState(row["state"]),
        utc(row["since"]),
        json.loads(row["row_values"] or "{}"),
    )


def error_row(error: RowError) -> dict[str, Any]:
    """An error as a row of the validator's table."""
    told = {name: list(pair) for name, pair in error.values.items()}
    return {
        "id": error.source_id,
        "entry": Entry.ERROR.value,
        "schema_name": error.schema,
        "table_name": error.table,
        "row_key": error.key,
        "kind": error.kind.value,
        "state": error.state.value,
        "since": error.since,
        "row_values": json.dumps(told, ensure_ascii=False),
        "updated_at": datetime.now(timezone.utc),
    }
