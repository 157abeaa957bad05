"""Carry out the plan of a batch: one commit per step."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.changelog.extraction import column_list
from dmdelta.changelog.integer_keys import NetChanges, net_changes
from dmdelta.changelog.row_keys import of_alias, same_key
from dmdelta.ddl.types.silver_types import COMMITTED_AT, VERSION, silver_columns
from dmdelta.lakehouse.commits import (
    CommitTag,
    OwnCommit,
    append,
    assert_alone,
    delete,
    merge,
    replace_using,
    replace_where,
)
from dmdelta.lakehouse.session import can_replace
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.change import Op
from dmdelta.model.schema import TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.silver.rows.batch import Batch
from dmdelta.silver.rows.compaction import (
    compacted,
    inserted_rows,
    key_names,
    keyed_changes,
    net_deletes,
    silver_rows,
)
from dmdelta.silver.rows.key_changes import find_moves, key_moves, net_moves, plan_slices
from dmdelta.silver.rows.key_predicate import plan_key_predicate
from dmdelta.silver.rows.keyless import keyless_changes, merge_keyless
from dmdelta.silver.rows.partial import assignments, folded, folded_rows
from dmdelta.silver.rows.strategy import MAX_REPLACED_KEYS, BatchFacts, Mode, Step, plan_apply

NET_OP = "_dm_op"
"""The column of a row's net op. The prefix avoids conflicts with the source's column names."""
SOURCE_VIEW = "dmdelta_changes"
_MOVES_VIEW = "dmdelta_moves"


@dataclass(frozen=True, slots=True)
class LiteralKeys:
    """The keys of a batch as literals.

    Attributes:
        predicate: the condition (SQL) that exactly the batch's keys fulfil.
        net: the compacted changes; None: a query compacts them.
    """

    predicate: str
    net: NetChanges | None = None


def facts_of(batch: Batch) -> tuple[BatchFacts, LiteralKeys | None]:
    """The input of the plan, and the batch's keys as literals; None if it does not need them, or cannot have them.

    Raises:
        LakehouseError: bronze cannot be read, or a row image lacks the key.
    """
    rows = batch.events.rows
    literal = _literal_keys(batch)
    return BatchFacts(
        rows.get(Op.INSERT, 0) + rows.get(Op.READ, 0),
        rows.get(Op.UPDATE, 0),
        rows.get(Op.DELETE, 0),
        moves=batch.events.moves,
        literal_keys=literal is not None,
        keyed=batch.keyed,
        partial=batch.folds,
        empty=batch.empty,
        replace=can_replace(batch.spark),
        failing=batch.failing is not None,
        repeats=batch.repeats,
    ), literal


def _literal_keys(batch: Batch) -> LiteralKeys | None:
    kind = batch.integer_key
    replaces = batch.mode is Mode.NORMAL and not batch.empty and batch.failing is None and not batch.folds
    if kind is None or batch.inserts_only or not replaces:
        return None
    net = None
    if batch.compacts_in_memory:
        net = net_changes(batch.memory, batch.schema)
        keys = [int(key) for key in net.keys.tolist()]
    elif batch.events.rows.get(Op.DELETE) or batch.events.moves:
        keys = batch.query_keys()
    else:
        return None  # replacing by key costs less than a query
    if len(keys) > MAX_REPLACED_KEYS:
        return None
    predicate = plan_key_predicate(batch.schema.primary_key[0], kind, keys)
    return LiteralKeys(predicate, net) if predicate else None


def commits_of(batch: Batch, facts: BatchFacts) -> list[tuple[Batch, Step]]:
    """The commits of a batch: those of the plan, or slices if there are key changes with partial images.

    Raises:
        UnsupportedEvent: there are more than MAX_MOVES key changes with partial images.
        LakehouseError: bronze cannot be read.
    """
    steps = plan_apply(facts, batch.mode)
    if not (batch.events.partial and facts.moves) or Step.MERGE_FOLDED not in steps:
        return [(batch, step) for step in steps]
    with wrapped(batch.bronze, "reading"):
        slices = plan_slices(find_moves(batch.changes, batch.schema), batch.events.row_count)
    return [(replace(batch, part=part), Step.MERGE_MOVES if part.moves else Step.MERGE_FOLDED) for part in slices]


_ADDS_AGAIN = (Step.APPEND, Step.APPEND_KEYLESS, Step.APPEND_COMPACTED, Step.MERGE_KEYLESS)
"""The steps that would add rows again which another run has applied; the others find them by their keys."""


def run_step(
    batch: Batch, step: Step, tag: CommitTag, literal: LiteralKeys | None, after: int | None
) -> OwnCommit | None:
    """Commit a step; None if there was nothing to delete.

    Args:
        literal: the batch's keys, for DELETE and REPLACE_LITERALS.
        after: the table's Delta version after its newest own commit; None: unknown.

    Raises:
        Fenced, CommitConflict, LakehouseError: as `dmdelta.lakehouse.commits`.
    """
    spark, target, schema = batch.spark, batch.target, batch.schema
    if step in _ADDS_AGAIN and after is not None:
        assert_alone(spark, target, tag, after)
    if step is Step.APPEND or step is Step.APPEND_KEYLESS:
        return append(spark, batch.kept(inserted_rows(batch.changes, schema)), target, tag, after=after)
    if step is Step.MERGE_KEYLESS:
        statement = merge_keyless(keyless_changes(batch.changes, schema), schema, target)
        return merge(spark, statement, target, tag, after=after)
    if step is Step.MERGE_MOVES:
        key_moves(batch.changes, schema).createOrReplaceTempView(_MOVES_VIEW)
        spark.sql(net_moves(_MOVES_VIEW, schema, target)).createOrReplaceTempView(SOURCE_VIEW)
        return merge(spark, _merge(batch, _assigned(schema)), target, tag, after=after)
    if step is Step.DELETE and literal is not None:
        return delete(spark, target, literal.predicate, tag)
    if step is Step.REPLACE_LITERALS and literal is not None:
        return replace_where(spark, _upserts(batch, literal), target, literal.predicate, tag, after=after)
    if step is Step.REPLACE:
        return replace_using(spark, _upserts(batch), target, _on(schema, schema.primary_key), tag, after=after)
    if step is Step.APPEND_COMPACTED:
        return append(spark, _upserts(batch), target, tag, after=after)
    return _merge_changes(batch, step, tag, after)


def _upserts(batch: Batch, literal: LiteralKeys | None = None) -> DataFrame:
    """The rows of silver that the batch's net inserts and updates leave."""
    schema = batch.schema
    if literal is not None and literal.net is not None:
        return inserted_rows(batch.spark.createDataFrame(literal.net.upserts), schema)
    return batch.kept(silver_rows(compacted(_keyed(batch), schema).where("op <> 'delete'"), schema))


def _keyed(batch: Batch) -> DataFrame:
    return keyed_changes(batch.changes, batch.schema, moves=bool(batch.events.moves) and batch.part is None)


def _merge_changes(batch: Batch, step: Step, tag: CommitTag, after: int | None) -> OwnCommit:
    """Commit a MERGE by key: MERGE, MERGE_FOLDED or DELETE_MERGE."""
    spark, target, schema, changes = batch.spark, batch.target, batch.schema, _keyed(batch)
    if step is Step.MERGE_FOLDED:
        folded_rows(folded(changes, schema), schema).createOrReplaceTempView(SOURCE_VIEW)
        return merge(spark, _merge(batch, assignments(schema, batch.undropped)), target, tag, after=after)
    if step is Step.DELETE_MERGE:
        net_deletes(changes, schema).createOrReplaceTempView(SOURCE_VIEW)
        return merge(spark, _delete_merge(batch), target, tag, after=after)
    rows = silver_rows(compacted(changes, schema), schema, f"op AS {NET_OP}")
    if batch.failing is not None:  # silver must not have a failing row, even if an earlier version passed
        rows = rows.withColumn(NET_OP, F.when(batch.failing, F.lit("delete")).otherwise(F.col(NET_OP)))
    rows.createOrReplaceTempView(SOURCE_VIEW)
    return merge(spark, _merge(batch, _assigned(schema)), target, tag, after=after)


def _assigned(schema: TableSchema) -> list[str]:
    """The SET clauses that assign every column from the source of the MERGE."""
    excluded = (*schema.primary_key, VERSION, COMMITTED_AT)
    return [f"{quote(name)} = _dm_source.{quote(name)}" for name in silver_columns(schema) if name not in excluded]


def _on(schema: TableSchema, names: Sequence[str]) -> str:
    return same_key(schema, of_alias("_dm_target"), list(map(of_alias("_dm_source"), names)))


def _delete_merge(batch: Batch) -> str:
    on = _on(batch.schema, key_names(batch.schema))
    return f"MERGE INTO {batch.target} AS _dm_target USING {SOURCE_VIEW} AS _dm_source ON {on} WHEN MATCHED THEN DELETE"


def _merge(batch: Batch, updated: Sequence[str]) -> str:
    """Replace semantics for every net change; an older event never changes a newer row."""
    schema = batch.schema
    newer = f"_dm_target.{VERSION} < _dm_source.{VERSION}"
    own = (f"{VERSION} = _dm_source.{VERSION}", f"{COMMITTED_AT} = _dm_source.{COMMITTED_AT}")
    values = ", ".join(f"_dm_source.{quote(name)}" for name in silver_columns(schema))
    return f"""MERGE INTO {batch.target} AS _dm_target USING {SOURCE_VIEW} AS _dm_source
        ON {_on(schema, schema.primary_key)}
        WHEN MATCHED AND _dm_source._dm_op = 'delete' AND {newer} THEN DELETE
        WHEN MATCHED AND _dm_source._dm_op <> 'delete' AND {newer} THEN UPDATE SET {", ".join([*updated, *own])}
        WHEN NOT MATCHED AND _dm_source._dm_op <> 'delete' THEN INSERT ({column_list(schema)}) VALUES ({values})"""
