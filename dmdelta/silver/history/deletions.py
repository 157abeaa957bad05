"""The keys that a range of the log deletes from a table, and that silver must no longer contain."""

from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from dmdelta.changelog.extraction import keys_of
from dmdelta.changelog.row_keys import has_key_of
from dmdelta.ddl.tracking.effects import empties
from dmdelta.ddl.types.silver_types import OWN_COLUMNS, VERSION, silver_type
from dmdelta.errors import UnsupportedSchemaChange
from dmdelta.model.schema import TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.silver.apply.request import ApplyRequest
from dmdelta.silver.history.range_changes import RangeProfile, range_profile
from dmdelta.silver.rows.compaction import compacted, key_names, keyed_changes
from dmdelta.silver.schema.evolution import older_than, version_at
from dmdelta.silver.schema.schema_ranges import SchemaRange


def deleted_keys(spark: SparkSession, request: ApplyRequest, silver_schema: TableSchema, live: DataFrame) -> DataFrame:
    """The keys whose last change in the request's range is a delete, with `_dm_version`: that of the deleting event.

    Args:
        silver_schema: the table's current structure in silver.
        live: silver's rows. A statement that empties the table deletes all rows that are older.

    Raises:
        UnsupportedSchemaChange: rows of the range have other primary key columns than silver, and no statement of the
            range deletes them.
        LakehouseError: bronze cannot be read.
    """
    profile = range_profile(spark, replace(request, ddl_applied_to=None))
    emptied = [piece.end for piece in profile.ranges if _empties(piece)]
    # A statement that empties the table also deletes what earlier deletes have left in silver.
    pieces = [piece for piece in profile.ranges if not emptied or piece.begin >= max(emptied)]
    deleted = [_deleted_in(spark, profile, piece, silver_schema) for piece in pieces]
    frames = [frame for frame in deleted if frame is not None]
    keys = [quote(key) for key in silver_schema.primary_key]
    if emptied:
        at = max(emptied)
        frames.append(live.where(older_than(at)).selectExpr(*keys, f"{version_at(at)} AS {VERSION}"))
    nothing = live.where("false").selectExpr(*keys, VERSION)
    return reduce(DataFrame.unionAll, frames, nothing)


def removed_keys(spark: SparkSession, request: ApplyRequest, silver_schema: TableSchema) -> DataFrame | None:
    """The keys whose last change in the request's range is a delete. None if they cannot be listed: a statement
    empties the table, or changes the columns of its primary key.

    Args:
        silver_schema: the table's structure in silver at the range's end.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    profile = range_profile(spark, replace(request, ddl_applied_to=None))
    if any(map(_empties, profile.ranges)):
        return None
    try:
        deleted = [_deleted_in(spark, profile, piece, silver_schema) for piece in profile.ranges]
    except UnsupportedSchemaChange:
        return None
    frames = [frame.drop(VERSION) for frame in deleted if frame is not None]
    kinds = (f"CAST(NULL AS {silver_type(column)}) AS {quote(column.name)}" for column in keys_of(silver_schema))
    return reduce(DataFrame.unionAll, frames, spark.sql(f"SELECT {', '.join(kinds)} WHERE false"))


def _empties(piece: SchemaRange) -> bool:
    return piece.then is not None and empties(piece.then.effects)


def _deleted_in(
    spark: SparkSession, profile: RangeProfile, piece: SchemaRange, silver_schema: TableSchema
) -> DataFrame | None:
    batch = profile.batch_of(spark, piece)
    if batch is None:
        return None
    schema = batch.schema
    if not has_key_of(schema, silver_schema):
        raise UnsupportedSchemaChange(
            f"the primary key of {silver_schema} changes within the range or after it",
            hint="replay a range after that statement, or rebuild the table: --rebuild",
            position=str(piece.end),
        )
    changes = compacted(keyed_changes(batch.changes, schema, moves=bool(batch.events.moves)), schema)
    kinds = [silver_type(column) for column in keys_of(silver_schema)]
    keys = [
        f"CAST({name} AS {kind}) AS {quote(key)}"
        for name, kind, key in zip(key_names(schema), kinds, silver_schema.primary_key, strict=True)
    ]
    version = f"CAST(named_struct('epoch', epoch, 'seq', seq, 'row', row) AS {OWN_COLUMNS[VERSION]}) AS {VERSION}"
    return changes.where("op = 'delete'").selectExpr(*keys, version)
