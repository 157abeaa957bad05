"""The silver table: its creation from a source table's structure, its owner and its columns."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import Enum

from pyspark.sql import SparkSession

from dmdelta.ddl.types.silver_types import OWN_COLUMNS, silver_columns
from dmdelta.errors import SchemaError, UnsupportedSchemaChange
from dmdelta.lakehouse.changes import Change
from dmdelta.lakehouse.commits import CommitTag
from dmdelta.lakehouse.creation import NewTable, create_table, make_schema
from dmdelta.lakehouse.retention import silver_retention
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.lakehouse.tables import OWNER, SOURCE_ID, SOURCE_TABLE, table_state
from dmdelta.model.schema import TableSchema
from dmdelta.sharding import Columns, merged_columns
from dmdelta.silver.schema.evolution import DROPPED, UNMARK, cluster_columns, clustering, indexed_columns
from dmdelta.silver.table.target import LEFT_OUT, Target

_PROPERTIES = {
    "delta.columnMapping.mode": "name",
    "delta.enableDeletionVectors": "true",
    "delta.enableTypeWidening": "true",
    # Widening a column to TIMESTAMP_NTZ does not enable the feature.
    "delta.feature.timestampNtz": "supported",
    # A checkpoint takes as long as several small commits: every 10 commits is too often for a stream.
    "delta.checkpointInterval": "50",
}


class Condition(Enum):
    """Whether a silver table exists."""

    ABSENT = "absent"
    PRESENT = "present"
    DROPPED = "dropped"
    """It exists, but its source table was dropped."""


def silver_condition(spark: SparkSession, target: Target) -> Condition:
    """Whether a source table's silver table exists.

    Raises:
        ForeignTable: the table belongs to another task, or to none.
        SchemaError: the table has the rows of another source table, and no route merges them.
        LakehouseError: the table cannot be read.
    """
    state = table_state(spark, target.place)
    if state is None:
        return Condition.ABSENT
    state.assert_owned(target.place, target.context.task)
    rows_of = state.properties.get(SOURCE_ID), state.properties.get(SOURCE_TABLE)
    if rows_of != _rows_of(target):
        others = f"{rows_of[1]} of {rows_of[0]}" if rows_of[0] else "shards"
        ours = f"{'.'.join(target.source)} of {target.context.source_id}"
        raise SchemaError(
            f"{target.place} contains the rows of {others}, but {ours} is routed to it, too",
            hint="to merge them, route both to this table, drop the existing table and run with --remove-meta; or "
            "exclude one of them with the block-allow-list",
        )
    return Condition.DROPPED if DROPPED in state.properties else Condition.PRESENT


def _rows_of(target: Target) -> tuple[str | None, str | None]:
    """The source and the source table of a silver table's rows; both None for a merged table."""
    return (None, None) if target.merged else (target.context.source_id, ".".join(target.source))


def has_rows(spark: SparkSession, table: str) -> bool:
    """Whether a table has rows.

    Raises:
        LakehouseError: the table cannot be read.
    """
    with wrapped(table, "reading"):
        return not spark.table(table).isEmpty()


def create_silver(spark: SparkSession, target: Target, schema: TableSchema, tag: CommitTag | None = None) -> None:
    """Create the silver table of a source table.

    Args:
        schema: the source table's structure.
        tag: records the position of the empty table; None if it has no position yet.

    Raises:
        ForeignTable: the location contains files that are not a Delta table.
        SchemaError: Delta does not support a column's name or type.
        LakehouseError: the table cannot be created.
    """
    table, schema = target.place, target.silver_schema(schema)
    columns = silver_columns(schema)
    cluster = cluster_columns(schema)
    retention = silver_retention(spark, table).properties
    properties = {**_PROPERTIES, **retention, "dmdelta.kind": "silver", OWNER: target.context.task}
    properties |= {name: of for name, of in zip((SOURCE_ID, SOURCE_TABLE), _rows_of(target), strict=True) if of}
    if cluster and (count := indexed_columns(schema)):
        properties["delta.dataSkippingNumIndexedCols"] = str(count)
    make_schema(spark, target.context.lakehouse, schema.schema)
    create_table(spark, table, NewTable(columns, properties, cluster=cluster), tag)


def open_silver(spark: SparkSession, target: Target, schema: TableSchema) -> bool:
    """Create or open the silver table of a source table for a snapshot. True if it existed.

    Removes the mark of a dropped table while the table is empty, because a marked table is treated as empty.

    Raises:
        ForeignTable, SchemaError, LakehouseError: as `create_silver`.
    """
    condition = silver_condition(spark, target)
    if condition is Condition.ABSENT:
        create_silver(spark, target, schema)
    elif condition is Condition.DROPPED:
        _alter(spark, target.place, (UNMARK,))
    return condition is not Condition.ABSENT


def restore_clustering(spark: SparkSession, table: str, schema: TableSchema) -> None:
    """Cluster a table whose columns were replaced.

    Raises:
        LakehouseError: the table cannot be changed.
    """
    if cluster_columns(schema):
        _alter(spark, table, clustering(schema))


def _alter(spark: SparkSession, table: str, changes: Iterable[Change]) -> None:
    with wrapped(table, "changing"):
        for change in changes:
            spark.sql(f"ALTER TABLE {table} {change.text}")


def has_shape(spark: SparkSession, target: Target, schema: TableSchema) -> bool:
    """Whether silver has exactly the columns and types of the source table and its route.

    Raises:
        LakehouseError: the table cannot be read.
    """
    present, required = shapes(spark, target, schema)
    return present == required


def shapes(spark: SparkSession, target: Target, schema: TableSchema) -> tuple[dict[str, str], dict[str, str]]:
    """Names and types (in Spark's notation) of the existing columns, and of those that a structure requires.

    Raises:
        LakehouseError: the table cannot be read.
    """
    required = silver_columns(target.silver_schema(schema))
    with wrapped(target.place, "reading the columns of"):
        fields = spark.table(target.place).schema.fields
        probe = spark.sql("SELECT " + ", ".join(f"CAST(NULL AS {kind})" for kind in required.values())).schema.fields
    return (
        {field.name: field.dataType.simpleString() for field in fields},
        {name: field.dataType.simpleString() for name, field in zip(required, probe, strict=True)},
    )


def seen_by(spark: SparkSession, target: Target, schema: TableSchema) -> TableSchema:
    """The source table's structure in silver, without the columns that silver lacks.

    Raises:
        UnsupportedSchemaChange: silver lacks a key column, or a column has another type.
    """
    present, required = shapes(spark, target, schema)
    missing = [name for name in schema.primary_key if name not in present]
    if missing:
        raise UnsupportedSchemaChange(
            f"the primary key of {schema} contains the column {missing[0]}, which {target.place} lacks",
            hint="change the filters so that they do not ignore the statement that added it, and take a new snapshot "
            f"of the table: dmdelta snapshot SPEC --table {schema}",
        )
    _assert_kinds(target.place, schema, present, {name: kind for name, kind in required.items() if name in present})
    seen = target.silver_schema(schema)
    return replace(seen, columns=tuple(column for column in seen.columns if column.name in present))


def assert_shape(spark: SparkSession, target: Target, schema: TableSchema) -> None:
    """Check that silver has every column of the source table, with its type.

    Silver may have more columns: it may have applied a later ALTER.

    Raises:
        UnsupportedSchemaChange: a column is missing or of another type.
    """
    _assert_kinds(target.place, schema, *shapes(spark, target, schema))


def _assert_kinds(table: str, schema: TableSchema, present: Mapping[str, str], required: Mapping[str, str]) -> None:
    for name, kind in required.items():
        if present.get(name) != kind:
            raise UnsupportedSchemaChange(
                f"the column {name} of {schema} is {kind} in the log and {present.get(name, 'missing')} in {table}",
                hint=f"take a new snapshot of the table: dmdelta snapshot SPEC --table {schema}",
            )


def merged_table_columns(spark: SparkSession, target: Target) -> Columns:
    """The columns of a merged table.

    Raises:
        LakehouseError: it cannot be read.
    """
    own = {*OWN_COLUMNS, *(column.name for column in target.constants)}
    with wrapped(target.place, "reading the columns of"):
        types = {field.name: field.dataType.simpleString() for field in spark.table(target.place).schema.fields}
        properties: dict[str, str] = dict(spark.sql(f"SHOW TBLPROPERTIES {target.place}").collect())
    return merged_columns(types, properties.get(LEFT_OUT, "").split(","), own)
