"""The structure of a source table at a position, from the structures and statements before it in bronze."""

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from dmdelta.changelog.context import SourceContext
from dmdelta.changelog.ranges import of_source, of_table
from dmdelta.ddl.tracking.effects import Altered, Moved, Unread
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.rules import NO_RULES
from dmdelta.silver.schema.ddl_effects import TableLog, follow, next_recorded
from dmdelta.silver.schema.range_profile import IS_STRUCTURE, StructureEvent, structure_before
from dmdelta.silver.schema.shadow_change import plan_shadow_change


def structure_at(
    spark: SparkSession,
    log: SourceContext,
    table: TableName,
    end: Position,
    earlier: Sequence[StructureEvent] | None = None,
) -> TableSchema | None:
    """The structure of a table at `end`; None if bronze does not contain it, or the table is dropped.

    Args:
        earlier: the structures and statements that determine it; None to look them up.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    if earlier is None:
        earlier = structure_before(spark, log.lakehouse, log.source_id, table, end)
    history = table_log(spark, log, table, earlier)
    schema: TableSchema | None = None
    for index, event in enumerate(earlier):
        schema = follow(history, schema, event, next_recorded(earlier[index + 1 :])).schema
    return schema


def table_log(
    spark: SparkSession,
    log: SourceContext,
    table: TableName,
    structure: Sequence[StructureEvent],
    ddl_applied_to: Position | None = None,
) -> TableLog:
    """The part of a log that determines a table's structure. Looks up other tables' structures in bronze."""
    return TableLog(
        name=table,
        flavor=log.flavor,
        structure=structure,
        other=lambda other, at: structure_at(spark, log, other, at),
        ddl_applied_to=ddl_applied_to,
        rules=log.rules,
        shadow=lambda shadow, real, at: _shadow_change(spark, log, shadow, real, at),
    )


def is_overridden(spark: SparkSession, log: SourceContext, table: TableName, end: Position) -> bool:
    """Whether an operator override up to `end` is of a statement on a table, or of one that bronze does not contain.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    positions = [position for position in log.rules.operators if position <= end]
    if not positions:
        return False
    keys = ", ".join(f"({position.epoch}, {position.seq})" for position in positions)
    query = f"""SELECT epoch, seq, bool_or({IS_STRUCTURE} AND {of_table(*table)}) AS own
        FROM {log.bronze} WHERE {of_source(log.source_id)} AND (epoch, seq) IN ({keys})
        AND op <> '{Op.SCHEMA.value}' GROUP BY epoch, seq"""
    with wrapped(log.bronze, "reading"):
        own = {(row["epoch"], row["seq"]): bool(row["own"]) for row in spark.sql(query).collect()}
    return any(own.get(position.key, True) for position in positions)


def _shadow_change(
    spark: SparkSession, log: SourceContext, shadow: TableName, real: TableSchema, at: Position
) -> Altered | Unread | Moved | None:
    """The change that the statements on a shadow table before `at` make to the real table's structure."""
    earlier = structure_before(spark, log.lakehouse, log.source_id, shadow, at)
    return plan_shadow_change(table_log(spark, replace(log, rules=NO_RULES), shadow, earlier), real)
