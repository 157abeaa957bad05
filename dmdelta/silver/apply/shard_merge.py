"""Shard merge: the Delta commits that apply a statement on one shard to the merged table, as a pure plan.

Changes of rows apply to the shard's own rows. Changes of columns apply once, for the first shard that makes them. A
column that other shards have remains.
"""

from dataclasses import replace

from dmdelta.ddl.types.silver_types import COMMITTED_AT, VERSION, silver_type
from dmdelta.errors import SchemaError
from dmdelta.lakehouse.changes import Change, Verb
from dmdelta.model.schema import Column, StoredColumn, TableSchema
from dmdelta.model.spark_sql import literal, quote
from dmdelta.sharding import Columns, held_type, holds
from dmdelta.silver.apply.shard_columns import ColumnPlan, ShardChange, own_older, plan_columns
from dmdelta.silver.schema.evolution import SilverChange, cluster_columns, clustering
from dmdelta.silver.table.target import LEFT_OUT, Target


def plan_shard_change(change: ShardChange) -> SilverChange:
    """The commits that apply a change of a shard's structure to the merged table.

    Raises:
        SchemaError: the statement reuses a column name, or a type does not fit.
    """
    plan = plan_columns(change)
    return SilverChange(_changes(plan, change), plan.unknown)


def _changes(plan: ColumnPlan, change: ShardChange) -> tuple[Change, ...]:
    before, after = (
        change.target.silver_schema(change.altered.before),
        change.target.silver_schema(change.altered.after),
    )
    unclustered = bool({*map(str.lower, cluster_columns(before))} & {*map(str.lower, plan.gone)})
    steps = ["CLUSTER BY NONE", *plan.steps] if unclustered else plan.steps
    changes = [*(Change(Verb.ALTER, step) for step in steps), *_own_rows(plan, change)]
    if plan.rewritten:
        changes.append(_rewrite(plan, change))
    elif plan.gone:
        changes.append(Change(Verb.ALTER, f"DROP COLUMNS ({', '.join(map(quote, plan.gone))})"))
    if (before.primary_key != after.primary_key or plan.rewritten or unclustered) and cluster_columns(after):
        changes += clustering(after)
    return tuple(changes)


def _own_rows(plan: ColumnPlan, change: ShardChange) -> list[Change]:
    if not plan.values:
        return []
    values = ", ".join(f"{quote(name)} = {value}" for name, value in plan.values.items())
    differ = " OR ".join(f"NOT ({quote(name)} <=> ({value}))" for name, value in plan.values.items())
    return [Change(Verb.UPDATE, f"SET {values} WHERE {own_older(change.target, change.at)} AND ({differ})")]


def _rewrite(plan: ColumnPlan, change: ShardChange) -> Change:
    columns = []
    for name in plan.types:
        value, kind = plan.rewritten.get(name, (quote(name), ""))
        columns.append(f"CAST({value} AS {kind}) AS {quote(name)}" if kind else value)
    columns += [quote(column.name) for column in change.target.constants]
    return Change(Verb.REWRITE, ", ".join([*columns, VERSION, COMMITTED_AT]))


def seen_among(target: Target, schema: TableSchema, existing: Columns, *, missing_too: bool = False) -> TableSchema:
    """A shard's structure in the merged table: with the merged table's types, without the omitted columns.

    Args:
        missing_too: statements may have been ignored: also omit columns that the merged table lacks.

    Raises:
        SchemaError: the merged table lacks a column that is not omitted, or a key column.
    """
    columns: list[Column] = []
    for column in schema.columns:
        kind = existing.type(column.name)
        if kind is None:
            left_out = missing_too or column.name.lower() in existing.left_out
            if not left_out or column.name in schema.primary_key:
                raise SchemaError(f"the merged table {target.place} has no column {column.name}")
        elif kind == held_type(column):
            columns.append(column)
        else:
            columns.append(StoredColumn.of(column, kind))
    return target.silver_schema(replace(schema, columns=tuple(columns)))


def plan_leaving_out(change: ShardChange) -> SilverChange:
    """Ignore a statement: the merged table keeps its columns, and omits those that the shard added.

    Raises:
        SchemaError: the merged table's type cannot hold the shard's new type.
    """
    altered, existing = change.altered, change.existing
    for column in altered.after.columns:
        present = existing.type(column.name)
        if present is not None and not holds(present, held_type(column)):
            raise SchemaError(f"{column.name} becomes {silver_type(column)}, which {present} cannot hold")
    kept = {column.name.lower() for column in altered.after.columns}
    in_both = [name for column in altered.before.columns if (name := existing.name(column.name))]
    dropped = [name for name in in_both if name.lower() not in kept]
    plan = ColumnPlan(dict(existing.types), values=dict.fromkeys(dropped, "NULL"))
    added = {column.name.lower() for column in altered.after.columns if existing.name(column.name) is None}
    names = ",".join(sorted(added | existing.left_out))
    recorded = [Change(Verb.ALTER, f"SET TBLPROPERTIES ({literal(LEFT_OUT)} = {literal(names)})")] if added else []
    return SilverChange((*recorded, *_own_rows(plan, change)))
