"""The silver table itself: made from a source table's structure, owned by its task, widened when columns come."""

from pyspark.sql import SparkSession

from dmdelta.ddl.evolution import AddColumns
from dmdelta.ddl.types import OWN_COLUMNS, silver_columns
from dmdelta.errors import SchemaError, UnsupportedSchemaChange
from dmdelta.lakehouse.foreign import wrapped
from dmdelta.lakehouse.place import Lakehouse, literal, quote
from dmdelta.lakehouse.tables import OWNER, SOURCE_ID, SOURCE_TABLE, table_state
from dmdelta.model.schema import TableSchema

CLUSTERED_COLUMNS = 4
_CLUSTERABLE = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE", "DATE", "TIMESTAMP", "STRING")
_INDEXED_COLUMNS = 32

_PROPERTIES = {
    "delta.columnMapping.mode": "name",
    "delta.enableDeletionVectors": "true",
    "delta.enableTypeWidening": "true",
    # A checkpoint takes as long as several small commits; 10 commits is too often for a stream of them.
    "delta.checkpointInterval": "50",
}


def silver_exists(spark: SparkSession, table: str, task: str, source_id: str) -> bool:
    """The table is there and this task made it.

    Raises:
        ForeignTable: a table is there that this task did not make.
        SchemaError: another source of the task writes it.
        LakehouseError: it cannot be told.
    """
    state = table_state(spark, table)
    if state is not None:
        state.assert_owned(table, task)
        other = state.properties.get(SOURCE_ID, source_id)
        if other != source_id:
            raise SchemaError(
                f"the sources {other!r} and {source_id!r} both have a table that goes to {table}",
                hint="merging tables of several sources is not supported: leave one out with the block-allow-list",
            )
    return state is not None


def has_rows(spark: SparkSession, table: str) -> bool:
    """
    Raises:
        LakehouseError: the table cannot be read.
    """
    with wrapped(table, "reading"):
        return not spark.table(table).isEmpty()


def create_silver(spark: SparkSession, lakehouse: Lakehouse, owner: tuple[str, str], schema: TableSchema) -> str:
    """Make the silver table of a source table for its owner, (task, source id); its SQL identifier.

    Raises:
        ForeignTable: files are there that are no Delta table.
        SchemaError: a column's name or type is impossible.
        LakehouseError: the table cannot be made.
    """
    table = lakehouse.silver(schema.schema, schema.table)
    columns = silver_columns(schema)
    cluster = _cluster_columns(schema)
    properties = {
        **_PROPERTIES,
        "dmdelta.kind": "silver",
        OWNER: owner[0],
        SOURCE_ID: owner[1],
        SOURCE_TABLE: str(schema),
    }
    positions = [list(columns).index(name) for name in schema.primary_key]
    if cluster and max(positions) >= _INDEXED_COLUMNS:
        properties["delta.dataSkippingNumIndexedCols"] = str(max(positions) + 1)
    listed = ", ".join(f"{quote(name)} {kind}" for name, kind in columns.items())
    clustered = f"CLUSTER BY ({cluster})" if cluster else ""
    set_to = ", ".join(f"{literal(name)} = {literal(value)}" for name, value in properties.items())
    with wrapped(table, "making"):
        if (database := lakehouse.schema_of(schema.schema)) is not None:
            spark.sql(f"CREATE SCHEMA IF NOT EXISTS {database}")
        spark.sql(f"CREATE TABLE {table} ({listed}) USING delta {clustered} TBLPROPERTIES ({set_to})")
    return table


def _cluster_columns(schema: TableSchema) -> str:
    """The key columns that a table is clustered by, as SQL; empty: none."""
    columns = silver_columns(schema)
    names = [quote(name) for name in schema.primary_key if columns[name].startswith(_CLUSTERABLE)]
    return ", ".join(names[:CLUSTERED_COLUMNS])


def cluster_again(spark: SparkSession, table: str, schema: TableSchema) -> None:
    """Cluster a table whose columns were replaced.

    Raises:
        LakehouseError: the table cannot be changed.
    """
    if cluster := _cluster_columns(schema):
        with wrapped(table, "clustering"):
            spark.sql(f"ALTER TABLE {table} CLUSTER BY ({cluster})")


def has_shape(spark: SparkSession, table: str, schema: TableSchema) -> bool:
    """Silver's columns are those of the source table, with their types, and no others.

    Raises:
        LakehouseError: the table cannot be read.
    """
    present, wanted = _shapes(spark, table, schema)
    return present == wanted


def _shapes(spark: SparkSession, table: str, schema: TableSchema) -> tuple[dict[str, str], dict[str, str]]:
    """Names and types (as Spark writes them) of the columns that are there, and of those that should be."""
    wanted = silver_columns(schema)
    with wrapped(table, "looking at"):
        fields = spark.table(table).schema.fields
        probe = spark.sql("SELECT " + ", ".join(f"CAST(NULL AS {kind})" for kind in wanted.values())).schema.fields
    return (
        {field.name: field.dataType.simpleString() for field in fields},
        {name: field.dataType.simpleString() for name, field in zip(wanted, probe, strict=True)},
    )


def assert_shape(spark: SparkSession, table: str, schema: TableSchema) -> None:
    """Every column of the source table is in silver with its type. Silver may have more: an ALTER may be ahead.

    Raises:
        UnsupportedSchemaChange: a column is missing or of another type.
    """
    present, wanted = _shapes(spark, table, schema)
    for name, kind in wanted.items():
        if present.get(name) != kind:
            raise UnsupportedSchemaChange(
                f"the column {name} of {schema} is {kind} by the log and {present.get(name, 'not there')} in {table}",
                hint=f"have the table read again: dmdelta snapshot SPEC --table {schema}",
            )


def add_columns(spark: SparkSession, table: str, change: AddColumns) -> None:
    """ALTER the silver table for an ADD COLUMN of the source; columns that are there already stay as they are.

    Raises:
        SchemaError: a column has a name that silver keeps for itself.
        LakehouseError: the table cannot be changed.
    """
    order = [column.name for column in change.schema.columns]
    kinds = silver_columns(change.schema)
    with wrapped(table, "adding columns to"):
        present = {name.lower() for name in spark.table(table).columns}
        for added in change.columns:
            if added.name.lower() in OWN_COLUMNS:
                raise SchemaError(f"{added.name} is a column of silver's own", hint="rename it at the source")
            if added.name.lower() in present:
                continue
            at = order.index(added.name)
            place = f"AFTER {quote(order[at - 1])}" if at else "FIRST"
            spark.sql(f"ALTER TABLE {table} ADD COLUMNS ({quote(added.name)} {kinds[added.name]} {place})")
