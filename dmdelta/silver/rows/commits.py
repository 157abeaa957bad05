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
from dmdelta.model.spark_sql import quote
from dmdelta.silver.rows.compaction import (
    compacted,
    inserted_rows,
    key_names,
    keyed_changes,
    net_deletes,
    silver_rows,
)
from dmdelta.silver.rows.key_changes import Slice, find_moves, moved_rows, plan_slices
from dmdelta.silver.rows.key_predicate import SUFFIXES, plan_key_predicate
from dmdelta.silver.rows.keyless import keyless_changes, merge_keyless
from dmdelta.silver.rows.partial import assignments, folded, folded_rows
from dmdelta.silver.rows.strategy import MAX_REPLACED_KEYS, BatchFacts, Mode, Step, plan_apply
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
    def integer_key(self) -> str | None:
        """The SQL type of the key in silver if it is one integer column."""
        kinds = [silver_type(key) for key in keys_of(self.schema)]
        return kinds[0] if len(kinds) == 1 and kinds[0] in SUFFIXES else None

    @property
    def keys_need_query(self) -> bool:
        """Whether `integer_keys` runs a query: the changes are in bronze, or a filter excludes some of them."""
        return self.memory is None or bool(self.counted) or integer_key(self.schema) is None

    def integer_keys(self) -> list[int]:
        """The keys that the batch's changes affect, sorted and distinct; more than MAX_REPLACED_KEYS if too many.

        Only for a batch with an `integer_key`.

        Raises:
            LakehouseError: bronze cannot be read, or a row image lacks the key.
        """
        if self.memory is not None and not self.keys_need_query:
            return [int(key) for key in integer_keys(self.memory, self.schema).tolist()]
        with wrapped(self.bronze, "reading"):
            keys = keyed_changes(self.changes, self.schema, moves=bool(self.events.moves)).select(
                key_names(self.schema)
            )
            return sorted(int(row[0]) for row in keys.distinct().limit(MAX_REPLACED_KEYS + 1).collect())

    def kept(self, rows: DataFrame) -> DataFrame:
        """The rows that are not quarantined."""
        return rows if self.failing is None else rows.where(~self.failing)


def facts_of(batch: Batch) -> tuple[BatchFacts, str]:
    """The input of the plan, and the condition (SQL) that exactly the batch's keys fulfil; '' if there is none.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    rows = batch.events.rows
    predicate = _key_predicate(batch) or ""
    return BatchFacts(
        rows.get(Op.INSERT, 0) + rows.get(Op.READ, 0),
        rows.get(Op.UPDATE, 0),
        rows.get(Op.DELETE, 0),
        moves=batch.events.moves,
        literal_keys=bool(predicate),
        keyed=batch.keyed,
        partial=batch.folds,
        empty=batch.empty,
        replace=can_replace(batch.spark),
        failing=batch.failing is not None,
        repeats=batch.repeats,
    ), predicate


def _key_predicate(batch: Batch) -> str | None:
    """The condition for the batch's keys; None if its plan does not need one, or if there cannot be one."""
    kind = batch.integer_key
    replaces = batch.mode is Mode.NORMAL and not batch.empty and batch.failing is None and not batch.folds
    if kind is None or batch.inserts_only or not replaces:
        return None
    deletes = batch.events.rows.get(Op.DELETE) or batch.events.moves
    if batch.keys_need_query and not deletes:
        return None  # replacing by key costs less than a query
    keys = batch.integer_keys()
    if len(keys) > MAX_REPLACED_KEYS:
        return None
    return plan_key_predicate(batch.schema.primary_key[0], kind, keys)


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


def run_step(batch: Batch, step: Step, tag: CommitTag, predicate: str, after: int | None) -> OwnCommit | None:
    """Commit a step; None if there was nothing to delete.

    Args:
        predicate: the condition for the batch's keys, for DELETE and REPLACE_LITERALS.
        after: the table's Delta version after its newest own commit; None: unknown.

    Raises:
        Fenced, CommitConflict, LakehouseError: as `dmdelta.lakehouse.commits`.
    """
    spark, target, schema = batch.spark, batch.target, batch.schema
    if step is Step.APPEND or step is Step.APPEND_KEYLESS:
        return append(spark, batch.kept(inserted_rows(batch.changes, schema)), target, tag, after=after)
    if step is Step.MERGE_KEYLESS:
        statement = merge_keyless(keyless_changes(batch.changes, schema), schema, target)
        return merge(spark, statement, target, tag, after=after)
    if step is Step.MERGE_MOVES:
        moved_rows(batch.changes, schema, target).createOrReplaceTempView(SOURCE_VIEW)
        return merge(spark, _merge(batch, _assigned(schema)), target, tag, after=after)
    if step is Step.DELETE:
        return delete(spark, target, predicate, tag)
    changes = keyed_changes(batch.changes, schema, moves=bool(batch.events.moves) and batch.part is None)
    if step is Step.MERGE_FOLDED:
        folded_rows(folded(changes, schema), schema).createOrReplaceTempView(SOURCE_VIEW)
        return merge(spark, _merge(batch, assignments(schema, batch.undropped)), target, tag, after=after)
    compact = compacted(changes, schema)
    if step is Step.DELETE_MERGE:
        net_deletes(changes, schema).createOrReplaceTempView(SOURCE_VIEW)
        return merge(spark, _delete_merge(batch), target, tag, after=after)
    if step is Step.MERGE:
        rows = silver_rows(compact, schema, f"op AS {NET_OP}")
        if batch.failing is not None:  # silver must not have a failing row, even if an earlier version passed
            rows = rows.withColumn(NET_OP, F.when(batch.failing, F.lit("delete")).otherwise(F.col(NET_OP)))
        rows.createOrReplaceTempView(SOURCE_VIEW)
        return merge(spark, _merge(batch, _assigned(schema)), target, tag, after=after)
    upserts = batch.kept(silver_rows(compact.where("op <> 'delete'"), schema))
    if step is Step.REPLACE_LITERALS:
        return replace_where(spark, upserts, target, predicate, tag, after=after)
    if step is Step.REPLACE:
        return replace_using(spark, upserts, target, schema.primary_key, tag, after=after)
    return append(spark, upserts, target, tag, after=after)


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
