"""The rows of a table after the row changes of a batch: what `run_step` commits, as a query.

Compaction and typed columns are those of the applier, so a live read and silver have the same values.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.changelog.row_keys import of_alias, same_key, same_key_of
from dmdelta.ddl.types.silver_types import COMMITTED_AT, VERSION, silver_columns
from dmdelta.errors import UnsupportedEvent
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.schema import TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.silver.rows.batch import Batch
from dmdelta.silver.rows.commits import NET_OP
from dmdelta.silver.rows.compaction import compacted, inserted_rows, key_names, keyed_changes, silver_rows
from dmdelta.silver.rows.key_changes import find_moves, key_moves, net_moves, plan_slices
from dmdelta.silver.rows.keyless import keyless_changes, net_keyless
from dmdelta.silver.rows.partial import assigned_values, folded, folded_rows
from dmdelta.silver.rows.strategy import Mode
from dmdelta.silver.table.shard_rows import as_held

BROADCAST_CHANGES = 500_000
"""Up to this many changes, their keys are sent to every task, so that silver's rows are not shuffled."""
MAX_COPIES = 16
"""How often a query may contain the rows before all changes: each step that reads them twice doubles it."""
_SOURCE, _TARGET = "_dm_source", "_dm_target"


@dataclass(frozen=True, slots=True)
class Changed:
    """The rows of a table after a batch.

    Attributes:
        copies: how often the query contains the rows before the batch.
    """

    rows: DataFrame
    copies: int = 1


def after_changes(state: DataFrame, batch: Batch) -> Changed:
    """The rows of a table after a batch that Spark compacts.

    Args:
        state: the rows before it, with the columns of silver for `batch.schema` and `batch.undropped`.

    Raises:
        UnsupportedEvent: too many updates change the key and have partial row images.
        LakehouseError: bronze cannot be read.
    """
    if batch.inserts_only:
        return Changed(_with(state, batch.kept(inserted_rows(batch.changes, batch.schema))))
    if not batch.keyed:
        return Changed(_keyless(state, batch), copies=2)
    if batch.events.partial and batch.events.moves:
        return _in_slices(state, batch)
    return Changed(_folded(state, batch) if batch.folds else _replaced(state, batch))


def _with(state: DataFrame, rows: DataFrame) -> DataFrame:
    """The rows of both, with the columns of `state`."""
    return state.unionAll(as_held(rows, state))


def _replaced(state: DataFrame, batch: Batch) -> DataFrame:
    """The rows that no change affects, and those that the net changes leave."""
    schema = batch.schema
    changes = keyed_changes(batch.changes, schema, moves=bool(batch.events.moves))
    upserts = silver_rows(compacted(changes, schema).where("op <> 'delete'"), schema)
    if batch.empty:
        return _with(state, batch.kept(upserts))
    keys = changes.selectExpr(*key_names(schema))  # not compacted: this costs no shuffle
    if batch.events.row_count <= BROADCAST_CHANGES:
        keys = F.broadcast(keys)
    on = same_key(schema, of_alias(_TARGET), [f"{_SOURCE}.{name}" for name in key_names(schema)])
    return _with(
        state.alias(_TARGET).join(keys.alias(_SOURCE), F.expr(on), "left_anti"),
        batch.kept(upserts),
    )


def _folded(state: DataFrame, batch: Batch) -> DataFrame:
    """The rows after changes whose images lack columns."""
    schema = batch.schema
    changes = keyed_changes(batch.changes, schema, moves=bool(batch.events.moves) and batch.part is None)
    return _merged(
        state, folded_rows(folded(changes, schema), schema), schema, assigned_values(schema, batch.undropped)
    )


def _in_slices(state: DataFrame, batch: Batch) -> Changed:
    """The rows after key changes whose images lack columns: the row with the old key has the missing values."""
    schema = batch.schema
    with wrapped(batch.bronze, "reading"):
        slices = plan_slices(find_moves(batch.changes, schema), batch.events.row_count)
    copies = 2 ** sum(part.moves for part in slices)
    if copies > MAX_COPIES:
        raise UnsupportedEvent(
            f"too many updates change the primary key of {schema} and have partial row images",
            hint="set binlog_row_image=FULL at the source for sessions that update primary keys",
        )

    def after(rows: DataFrame, part: Batch) -> DataFrame:
        if part.part is None or not part.part.moves:
            return _folded(rows, part)
        moved = _net(net_moves, key_moves(part.changes, schema), schema, rows)
        return _merged(rows, moved, schema, {name: f"{_SOURCE}.{quote(name)}" for name in silver_columns(schema)})

    return Changed(reduce(after, (replace(batch, part=part) for part in slices), state), copies)


def _merged(state: DataFrame, source: DataFrame, schema: TableSchema, updated: Mapping[str, str]) -> DataFrame:
    """The rows that a MERGE of `source` leaves.

    Args:
        source: net changes with `_dm_op`.
        updated: the values (SQL) of an updated row, by column; keys and silver's own columns come from the source.
    """
    on = same_key_of(schema, _TARGET, _SOURCE)
    both = state.alias(_TARGET).join(source.alias(_SOURCE), F.expr(on), "full_outer")
    new, old = f"{_SOURCE}.{NET_OP} IS NOT NULL", f"{_TARGET}.{VERSION} IS NOT NULL"
    newer = f"{new} AND (NOT ({old}) OR {_TARGET}.{VERSION} < {_SOURCE}.{VERSION})"
    columns, present = [], set(source.columns)
    for name in state.columns:
        inserted = f"{_SOURCE}.{quote(name)}" if name in present else "NULL"
        value = (
            inserted if name in schema.primary_key or name in (VERSION, COMMITTED_AT) else updated.get(name, inserted)
        )
        whole = f"IF({old}, {value}, {inserted})"
        columns.append(f"IF({newer}, {whole}, {_TARGET}.{quote(name)}) AS {quote(name)}")
    gone = f"({newer} AND {_SOURCE}.{NET_OP} = 'delete')"
    return both.where(f"({old} OR {new}) AND NOT coalesce({gone}, false)").selectExpr(*columns)


def _keyless(state: DataFrame, batch: Batch) -> DataFrame:
    """The rows of a table without a key: as many of the equal rows are removed as at the source, the oldest first."""
    schema = batch.schema
    net = _net(net_keyless, keyless_changes(batch.changes, schema), schema, state)
    added, removed = net.where(f"{NET_OP} = 'insert'"), net.where(f"{NET_OP} = 'delete'").select(VERSION)
    if batch.mode is Mode.SAFE:
        added = added.join(state.select(VERSION), VERSION, "left_anti").select(*map(quote, net.columns))
    kept = state.join(F.broadcast(removed), VERSION, "left_anti").select(*_quoted(state.columns))
    return _with(kept, added.drop(NET_OP))


def _net(
    query: Callable[[str, TableSchema, str], str], changes: DataFrame, schema: TableSchema, state: DataFrame
) -> DataFrame:
    """The net changes that a query of the applier yields for frames in place of tables.

    As arguments of the query, the frames become part of its plan: no view outlives this call, and nothing that happens
    later changes the result.
    """
    # No column has such a name.
    frames: dict[str, Any] = {f"dmdelta_live_{uuid4().hex}": frame for frame in (changes, state)}
    of_changes, of_state = frames
    text = query(of_changes, schema, of_state).replace("{", "{{").replace("}", "}}")
    for name in frames:
        text = text.replace(name, f"{{{name}}}")
    return changes.sparkSession.sql(text, **frames)


def _quoted(names: Sequence[str]) -> list[str]:
    return [quote(name) for name in names]
