"""Carry out the plan of a batch: one commit per step."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.changelog.extraction import column_list, keys_of
from dmdelta.changelog.integer_keys import integer_key, integer_keys
from dmdelta.changelog.ranges import of_source, of_table, row_changes
from dmdelta.ddl.types.silver_types import COMMITTED_AT, VERSION, silver_columns, silver_type
from dmdelta.lakehouse.commits import CommitTag, OwnCommit, append, delete, merge, replace_using, replace_where
from dmdelta.lakehouse.session import can_replace
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema
from dmdelta.model.spark_sql import literal, quote
from dmdelta.silver.rows.compaction import (
    compacted,
    inserted_rows,
    key_names,
    keyed_changes,
    net_deletes,
    silver_rows,
)
from dmdelta.silver.rows.key_changes import Slice, find_moves, moved_rows, plan_slices
from dmdelta.silver.rows.keyless import keyless_changes, merge_keyless
from dmdelta.silver.rows.partial import assignments, folded, folded_rows
from dmdelta.silver.rows.strategy import MAX_LITERAL_KEYS, MAX_REPLACED_KEYS, BatchFacts, Mode, Step, plan_apply
from dmdelta.silver.schema.range_profile import TableEvents

NET_OP = "_dm_op"
"""The column of a row's net op. The prefix avoids conflicts with the source's column names."""
SOURCE_VIEW = "dmdelta_changes"


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows of one table in one range, with one structure.

    Attributes:
        bronze, target: SQL identifiers.
        empty: the silver table was created for this batch.
        part: the slice of the range's rows; None for all.
        counted: the condition (SQL) for rows that filters do not exclude; '' for all.
        failing: true for rows that are quarantined; None if there are none.
        undropped: columns of silver that the source has dropped, by a statement that the rules ignored.
        repeats: an inserted key may exist in silver, because a filter excluded its delete.
        memory: the table's rows of the range as Arrow (`BatchMemory.rows`); None: they are read from bronze.
    """

    spark: SparkSession
    bronze: str
    source_id: str
    target: str
    schema: TableSchema
    begin: Position
    end: Position
    events: TableEvents
    mode: Mode
    empty: bool
    part: Slice | None = None
    counted: str = ""
    failing: Column | None = None
    undropped: tuple[str, ...] = ()
    repeats: bool = False
    memory: Any = None

    @property
    def changes(self) -> DataFrame:
        """The row changes that take effect in the range."""
        table = of_table(self.events.schema, self.events.table)
        effective = row_changes(self.begin, self.end, self.events.groups)
        # A snapshot row is a new row, like an insert.
        columns = "* EXCEPT (op), IF(op = 'read', 'insert', op) AS op" if Op.READ in self.events.rows else "*"
        condition = f"{of_source(self.source_id)} AND {table} AND {effective}"
        condition += f" AND {self.part.condition}" if self.part else ""
        condition += f" AND {self.counted}" if self.counted else ""
        if self.memory is not None:
            return self.spark.createDataFrame(self.memory).where(condition)
        return self.spark.sql(f"SELECT {columns} FROM {self.bronze} WHERE {condition}")

    @property
    def keyed(self) -> bool:
        return bool(self.schema.primary_key)

    @property
    def inserts_only(self) -> bool:
        """Whether every row is new, so that compaction is unnecessary."""
        rows = self.events.rows
        if self.repeats and self.keyed:
            return False
        return not (rows.get(Op.UPDATE) or rows.get(Op.DELETE)) and (self.empty or self.mode is Mode.NORMAL)

    @property
    def folds(self) -> bool:
        """Whether row images lack columns of silver, which must keep their values."""
        return bool(self.events.partial) or (bool(self.undropped) and self.failing is None)

    @property
    def keys_need_query(self) -> bool:
        """Whether the keys of the changes need a Spark job: not in memory, not integers, or filtered by SQL."""
        return self.memory is None or bool(self.counted) or integer_key(self.schema) is None

    def kept(self, rows: DataFrame) -> DataFrame:
        """The rows that are not quarantined."""
        return rows if self.failing is None else rows.where(~self.failing)


def facts_of(batch: Batch) -> tuple[BatchFacts, Sequence[str]]:
    """The input of the plan, and SQL literals of the keys that it needs: all keys of a batch with few keys, else those
    whose last change is a delete.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    rows = batch.events.rows
    reads, inserts, updates, deletes = (rows.get(op, 0) for op in (Op.READ, Op.INSERT, Op.UPDATE, Op.DELETE))
    moves, keys, few = batch.events.moves, list[str](), False
    lists = batch.mode is Mode.NORMAL and not batch.empty and batch.failing is None and not batch.folds
    if batch.keyed and (deletes or moves) and lists:
        # A change affects one key or two.
        few = bool(inserts + reads + updates) and sum(rows.values()) + moves <= MAX_REPLACED_KEYS
        with wrapped(batch.bronze, "reading"):
            keys = _keys(batch, deleted_only=not few)
    return BatchFacts(
        inserts + reads,
        updates,
        deletes,
        moves=moves,
        net_deletes=len(keys),
        few_keys=few,
        keyed=batch.keyed,
        partial=batch.folds,
        empty=batch.empty,
        replace=can_replace(batch.spark),
        failing=batch.failing is not None,
        repeats=batch.repeats,
    ), keys


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


def run_step(batch: Batch, step: Step, tag: CommitTag, keys: Sequence[str]) -> OwnCommit | None:
    """Commit a step; None if there was nothing to delete.

    Args:
        keys: SQL literals of the keys for the steps that delete by literals.

    Raises:
        Fenced, CommitConflict, LakehouseError: as `dmdelta.lakehouse.commits`.
    """
    spark, target, schema = batch.spark, batch.target, batch.schema
    if step is Step.APPEND or step is Step.APPEND_KEYLESS:
        return append(spark, batch.kept(inserted_rows(batch.changes, schema)), target, tag)
    if step is Step.MERGE_KEYLESS:
        statement = merge_keyless(keyless_changes(batch.changes, schema), schema, target)
        return merge(spark, statement, target, tag)
    if step is Step.MERGE_MOVES:
        moved_rows(batch.changes, schema, target).createOrReplaceTempView(SOURCE_VIEW)
        return merge(spark, _merge(batch, _assigned(schema)), target, tag)
    if step is Step.DELETE:
        return delete(spark, target, _among(schema, keys), tag)
    changes = keyed_changes(batch.changes, schema, moves=bool(batch.events.moves) and batch.part is None)
    if step is Step.MERGE_FOLDED:
        folded_rows(folded(changes, schema), schema).createOrReplaceTempView(SOURCE_VIEW)
        return merge(spark, _merge(batch, assignments(schema, batch.undropped)), target, tag)
    compact = compacted(changes, schema)
    if step is Step.DELETE_MERGE:
        net_deletes(changes, schema).createOrReplaceTempView(SOURCE_VIEW)
        return merge(spark, _delete_merge(batch), target, tag)
    if step is Step.MERGE:
        rows = silver_rows(compact, schema, f"op AS {NET_OP}")
        if batch.failing is not None:  # silver must not have a failing row, even if an earlier version passed
            rows = rows.withColumn(NET_OP, F.when(batch.failing, F.lit("delete")).otherwise(F.col(NET_OP)))
        rows.createOrReplaceTempView(SOURCE_VIEW)
        return merge(spark, _merge(batch, _assigned(schema)), target, tag)
    upserts = batch.kept(silver_rows(compact.where("op <> 'delete'"), schema))
    if step is Step.REPLACE_LITERALS:
        return replace_where(spark, upserts, target, _among(schema, keys), tag)
    if step is Step.REPLACE:
        return replace_using(spark, upserts, target, schema.primary_key, tag)
    return append(spark, upserts, target, tag)


def _keys(batch: Batch, *, deleted_only: bool) -> list[str]:
    """SQL literals of a batch's keys, or of the net deletes: at most MAX_LITERAL_KEYS + 1, to detect too many."""
    kinds = [silver_type(key) for key in keys_of(batch.schema)]
    if not deleted_only and not batch.keys_need_query:
        integers = integer_keys(batch.memory, batch.schema)[: MAX_LITERAL_KEYS + 1].tolist()
        return [_literal(str(key), *kinds) for key in integers]
    changes = keyed_changes(batch.changes, batch.schema, moves=bool(batch.events.moves))
    names = key_names(batch.schema)
    frame = net_deletes(changes, batch.schema) if deleted_only else changes.select(*names).distinct()
    texts = [_text_of(name, kind) for name, kind in zip(key_names(batch.schema), kinds, strict=True)]
    rows = frame.selectExpr(*texts).limit(MAX_LITERAL_KEYS + 1).collect()
    return [", ".join(_literal(text, kind) for text, kind in zip(row, kinds, strict=True)) for row in rows]


def _text_of(name: str, kind: str) -> str:
    return f"hex({name})" if kind == "BINARY" else f"CAST({name} AS STRING)"


def _literal(text: str, kind: str) -> str:
    if kind == "BINARY":
        return f"X'{text}'"
    return literal(text) if kind == "STRING" else f"CAST({literal(text)} AS {kind})"


def _among(schema: TableSchema, keys: Sequence[str]) -> str:
    names = ", ".join(quote(name) for name in schema.primary_key)
    if len(schema.primary_key) == 1:
        return f"{names} IN ({', '.join(keys)})"
    return f"({names}) IN ({', '.join(f'({key})' for key in keys)})"


def _assigned(schema: TableSchema) -> list[str]:
    """The SET clauses that assign every column from the source of the MERGE."""
    excluded = (*schema.primary_key, VERSION, COMMITTED_AT)
    return [f"{quote(name)} = _dm_source.{quote(name)}" for name in silver_columns(schema) if name not in excluded]


def _on(schema: TableSchema, names: Sequence[str]) -> str:
    pairs = zip(schema.primary_key, names, strict=True)
    return " AND ".join(f"_dm_target.{quote(key)} = _dm_source.{quote(name)}" for key, name in pairs)


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
