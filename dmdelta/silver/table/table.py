"""The silver table itself: made from a source table's structure, owned by its task."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import Enum

from pyspark.sql import SparkSession

from dmdelta.ddl.types.silver_types import OWN_COLUMNS, silver_columns
from dmdelta.errors import SchemaError, UnsupportedSchemaChange
from dmdelta.lakehouse.changes import Change
from dmdelta.lakehouse.commits import CommitTag
from dmdelta.lakehouse.creation import NewTable, create_table, make_schema
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
    # A column that is widened to it does not bring the feature along.
    "delta.feature.timestampNtz": "supported",
    # A checkpoint takes as long as several small commits; 10 commits is too often for a stream of them.
    "delta.checkpointInterval": "50",
}


class Condition(Enum):
    """Whether a silver table is there."""

    ABSENT = "absent"
    PRESENT = "present"
    DROPPED = "dropped"
    """It is there, but its source table was dropped."""


def silver_condition(spark: SparkSession, target: Target) -> Condition:
    """Whether a source table's silver table is there.

    Raises:
        ForeignTable: a table is there that this task did not make.
        SchemaError: another source table goes there, and no route merges them.
        LakehouseError: it cannot be told.
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
            f"{target.place} has the rows of {others}, and {ours} goes there",
            hint="a route that sends both there merges them, into a table that is made anew: delete what is there, and "
            "run with --remove-meta; or leave one out with the block-allow-list",
        )
    return Condition.DROPPED if DROPPED in state.properties else Condition.PRESENT


def _rows_of(target: Target) -> tuple[str | None, str | None]:
    """The source and its table whose rows a silver table has; of a merged one, neither."""
    return (None, None) if target.merged else (target.context.source_id, ".".join(target.source))


def has_rows(spark: SparkSession, table: str) -> bool:
    """
    Raises:
        LakehouseError: the table cannot be read.
    """
    with wrapped(table, "reading"):
        return not spark.table(table).isEmpty()


def create_silver(spark: SparkSession, target: Target, schema: TableSchema, tag: CommitTag | None = None) -> None:
    """Make the silver table of a source table.

    Args:
        schema: the source table's structure.
        tag: where the empty table is, None for nowhere yet.

    Raises:
        ForeignTable: files are there that are no Delta table.
        SchemaError: a column's name or type is impossible.
        LakehouseError: the table cannot be made.
    """
    table, schema = target.place, target.silver_schema(schema)
    columns = silver_columns(schema)
    cluster = cluster_columns(schema)
    properties = {**_PROPERTIES, "dmdelta.kind": "silver", OWNER: target.context.task}
    properties |= {name: of for name, of in zip((SOURCE_ID, SOURCE_TABLE), _rows_of(target), strict=True) if of}
    if cluster and (count := indexed_columns(schema)):
        properties["delta.dataSkippingNumIndexedCols"] = str(count)
    make_schema(spark, target.context.lakehouse, schema.schema)
    create_table(spark, table, NewTable(columns, properties, cluster=cluster), tag)


def open_silver(spark: SparkSession, target: Target, schema: TableSchema) -> bool:
    """Have the silver table of a source table there, whose rows a snapshot will tell; False if it was made now.

    The mark of a table that was dropped goes while it is still empty: what is marked so is taken for empty.

    Raises:
        ForeignTable, SchemaError, LakehouseError: as `create_silver`.
    """
    condition = silver_condition(spark, target)
    if condition is Condition.ABSENT:
        create_silver(spark, target, schema)
    elif condition is Condition.DROPPED:
        _alter(spark, target.place, (UNMARK,))
    return condition is not Condition.ABSENT


def cluster_again(spark: SparkSession, table: str, schema: TableSchema) -> None:
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
    """Silver's columns are those of the source table and its route, with their types, and no others.

    Raises:
        LakehouseError: the table cannot be read.
    """
    present, wanted = _shapes(spark, target, schema)
    return present == wanted


def _shapes(spark: SparkSession, target: Target, schema: TableSchema) -> tuple[dict[str, str], dict[str, str]]:
    """Names and types (as Spark writes them) of the columns that are there, and of those that should be."""
    wanted = silver_columns(target.silver_schema(schema))
    with wrapped(target.place, "looking at"):
        fields = spark.table(target.place).schema.fields
        probe = spark.sql("SELECT " + ", ".join(f"CAST(NULL AS {kind})" for kind in wanted.values())).schema.fields
    return (
        {field.name: field.dataType.simpleString() for field in fields},
        {name: field.dataType.simpleString() for name, field in zip(wanted, probe, strict=True)},
    )


def seen_by(spark: SparkSession, target: Target, schema: TableSchema) -> TableSchema:
    """The source table's structure as silver has it, without the columns that are not there.

    Raises:
        UnsupportedSchemaChange: a key column is not there, or a column is of another type.
    """
    present, wanted = _shapes(spark, target, schema)
    missing = [name for name in schema.primary_key if name not in present]
    if missing:
        raise UnsupportedSchemaChange(
            f"the key of {schema} has the column {missing[0]}, which is not in {target.place}",
            hint="let the statement that made it pass the filters, and have the table read again: "
            f"dmdelta snapshot SPEC --table {schema}",
        )
    _assert_kinds(target.place, schema, present, {name: kind for name, kind in wanted.items() if name in present})
    seen = target.silver_schema(schema)
    return replace(seen, columns=tuple(column for column in seen.columns if column.name in present))


def assert_shape(spark: SparkSession, target: Target, schema: TableSchema) -> None:
    """Every column of the source table is in silver with its type. Silver may have more: an ALTER may be ahead.

    Raises:
        UnsupportedSchemaChange: a column is missing or of another type.
    """
    _assert_kinds(target.place, schema, *_shapes(spark, target, schema))


def _assert_kinds(table: str, schema: TableSchema, present: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    for name, kind in wanted.items():
        if present.get(name) != kind:
            raise UnsupportedSchemaChange(
                f"the column {name} of {schema} is {kind} by the log and {present.get(name, 'not there')} in {table}",
                hint=f"have the table read again: dmdelta snapshot SPEC --table {schema}",
            )


def columns_there(spark: SparkSession, target: Target) -> Columns:
    """The columns of a merged table.

    Raises:
        LakehouseError: it cannot be read.
    """
    own = {*OWN_COLUMNS, *(column.name for column in target.constants)}
    with wrapped(target.place, "looking at"):
        types = {field.name: field.dataType.simpleString() for field in spark.table(target.place).schema.fields}
        properties: dict[str, str] = dict(spark.sql(f"SHOW TBLPROPERTIES {target.place}").collect())
    return merged_columns(types, properties.get(LEFT_OUT, "").split(","), own)
