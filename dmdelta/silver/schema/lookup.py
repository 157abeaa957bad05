"""The structure of a source table at a position, from what bronze says before it."""

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from dmdelta.changelog.context import SourceContext
from dmdelta.ddl.tracking.effects import Altered, Created, Origin
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.rules import NO_RULES
from dmdelta.silver.schema.ddl_effects import TableLog, follow, next_told
from dmdelta.silver.schema.range_profile import StructureEvent, structure_before


def structure_at(spark: SparkSession, log: SourceContext, table: TableName, end: Position) -> TableSchema | None:
    """The structure that everything before `end` leads to; None if nothing tells it, or the table is gone.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    earlier = structure_before(spark, log.lakehouse, log.source_id, table, end)
    told = table_log(spark, log, table, earlier)
    schema: TableSchema | None = None
    for index, event in enumerate(earlier):
        schema = follow(told, schema, event, next_told(earlier[index + 1 :])).schema
    return schema


def table_log(
    spark: SparkSession,
    log: SourceContext,
    table: TableName,
    structure: Sequence[StructureEvent],
    ddl_applied_to: Position | None = None,
) -> TableLog:
    """What part of a log says about a table's structure; what it leaves open is asked of bronze."""
    return TableLog(
        table,
        log.flavor,
        structure,
        lambda other, at: structure_at(spark, log, other, at),
        ddl_applied_to,
        log.rules,
        lambda shadow, real, at: _shadow_change(spark, log, shadow, real, at),
    )


def _shadow_change(
    spark: SparkSession, log: SourceContext, shadow: TableName, real: TableSchema, at: Position
) -> Altered | None:
    """What the statements on a shadow table, from its making on, make of the real one's structure."""
    earlier = structure_before(spark, log.lakehouse, log.source_id, shadow, at)
    as_real = replace(log, rules=NO_RULES)
    told = table_log(spark, as_real, shadow, earlier)
    schema: TableSchema | None = None
    origins: dict[str, Origin] = {}
    for event in earlier:
        followed = follow(told, schema, event, None)
        for effect in followed.effects:
            if isinstance(effect, Created) and followed.schema is not None:
                names = {column.name.lower(): column.name for column in real.columns}
                origins = {column.name: Origin(names.get(column.name.lower())) for column in followed.schema.columns}
            elif isinstance(effect, Altered):
                pairs = zip(effect.after.columns, effect.origins, strict=True)
                origins = {column.name: origins[way.was] if way.was is not None else way for column, way in pairs}
        schema = followed.schema
    if schema is None or set(origins) != {column.name for column in schema.columns}:
        return None
    after = replace(schema, schema=real.schema, table=real.table)
    return Altered(real, after, tuple(origins[column.name] for column in after.columns))
