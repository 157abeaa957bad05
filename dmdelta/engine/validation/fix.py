"""Repairs silver: reads differing rows from the source again.

This is an ad-hoc snapshot of single rows. Their version is older than any log. Changes of the log that they may already
contain are applied in safe mode; the commit is one of the table's own, and its tag says up to where.
"""

from collections.abc import Sequence
from dataclasses import replace

from dmdelta.bronze.progress import newest_landed
from dmdelta.changelog.row_keys import without_keys
from dmdelta.engine.control.exclusive import exclusive_access
from dmdelta.engine.snapshot.chunk_source import ChunkFrames
from dmdelta.engine.task.source import TaskSource
from dmdelta.engine.validation.landed_position import plan_position
from dmdelta.errors import ConfigError, QualityError, ServerChanged
from dmdelta.lakehouse.history import CommitTag
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema
from dmdelta.model.spark_sql import literal, quote
from dmdelta.quality.reconcile import Comparison
from dmdelta.silver.apply.direct_load import read_rows_of
from dmdelta.silver.history.repair import FOUND, GONE, repair_rows, table_version
from dmdelta.silver.table.shard_rows import as_held, seen_whole, shard_rows
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.relay.relay_dir import newest_begin
from dmdelta.source.server import require_server
from dmdelta.source.snapshot.chunk import Chunk
from dmdelta.source.snapshot.consistent_read import ConsistentTable
from dmdelta.source.snapshot.planner import snapshot_end

MAX_KEYS = 10_000
"""Beyond this number of rows, a snapshot of the whole table is faster."""
FIXED_EPOCH = -(1 << 31)
"""The epoch of repaired rows: older than all others."""


def fix_rows(
    source: TaskSource, endpoint: Endpoint, comparison: Comparison, table: ConsistentTable, keys: Sequence[str]
) -> None:
    """Replace silver's rows of some keys by the source's, while the task is paused.

    Args:
        keys: canonical texts.

    Raises:
        ConfigError: the table has no key.
        QualityError: there are more than `MAX_KEYS` keys, or the task follows another server.
        DmdeltaError: the source cannot be read, or silver cannot be written.
    """
    task, schema = source.task, table.schema
    spark, target = task.spark, source.context.table(schema.name)
    if not schema.primary_key:
        raise ConfigError(
            f"{schema} has no key: single rows cannot be repaired",
            hint=f"take a new snapshot: dmdelta snapshot SPEC --table {schema}",
        )
    if len(keys) > MAX_KEYS:
        raise QualityError(
            f"{len(keys):,} rows of {schema} differ",
            hint=f"take a new snapshot: dmdelta snapshot SPEC --table {schema}",
        )
    staging = task.lakehouse.metadata(f"{task.spec.name}_fix")
    with exclusive_access(task.spec):
        chunk = _chunk(comparison, schema, keys)
        try:
            until = _stage(source, endpoint, chunk, table.position.server_uuid, staging)
        except ServerChanged as error:
            hint = "run the command again when the address and the task lead to one server"
            raise QualityError(f"{schema} is not repaired: {error.message}", hint=hint) from error
        live = spark.table(target.place)
        columns, seen = list(map(quote, live.columns)), seen_whole(target, schema, live)
        fixed = as_held(spark.table(staging), live).selectExpr(*columns, f"false AS {GONE}", f"false AS {FOUND}")
        wrong = shard_rows(target, live).where(f"{comparison.key_text.silver} IN ({', '.join(map(literal, keys))})")
        gone = without_keys(wrong, fixed.select(*map(quote, seen.primary_key)), seen)
        rows = fixed.unionAll(gone.selectExpr(*columns, f"true AS {GONE}", f"true AS {FOUND}"))

        def next_tag() -> CommitTag:
            return plan_tag(table_version(spark, target).commit.tag, task.run, until)

        repair_rows(spark, target.place, rows, seen, next_tag)


def _stage(source: TaskSource, endpoint: Endpoint, chunk: Chunk, server_uuid: str, staging: str) -> Position:
    """Write the rows of a chunk to a table; returns the end of the source's log after they were read.

    Args:
        server_uuid: of the server that has the rows.

    Raises:
        ServerChanged: the address leads to another server, or the task follows another one.
        DmdeltaError: the source cannot be read, or the table cannot be written.
    """
    spark, context = source.task.spark, source.context
    frames = ChunkFrames(spark, endpoint, context.source_id, context.flavor, FIXED_EPOCH, server_uuid)
    read = read_rows_of(frames.table_rows([chunk]), chunk.schema, context.table(chunk.schema.name))
    # Staged, so that Spark reads the source only once: a second read may return other rows.
    with wrapped(staging, "writing"):
        read.write.format("delta").mode("overwrite").option("overwriteSchema", "true").saveAsTable(staging)
    end = snapshot_end(endpoint)
    require_server(end.server_uuid, server_uuid, endpoint)
    landed = newest_landed(spark, source.landing)
    until = plan_position(end, landed.end, newest_begin(source.relay_folder)) if landed is not None else None
    if until is None:
        raise ServerChanged(f"{endpoint} leads to the server {end.server_uuid}, whose log the task does not follow")
    return until


def plan_tag(newest: CommitTag, run: str, until: Position) -> CommitTag:
    """The tag of a repair after the table's newest commit: the table stays where it is, and remains whole.

    Args:
        until: the position at which the source was read.
    """
    later = max(until, newest.safe_until or until)
    return replace(newest, version=newest.version + 1, run=run, begin=newest.end, safe_until=later, repaired=True)


def _chunk(comparison: Comparison, schema: TableSchema, keys: Sequence[str]) -> Chunk:
    """The chunk of the source that has the rows of the keys."""
    texts = ", ".join(f"CONVERT(X'{key.encode().hex()}' USING utf8mb4)" for key in keys)
    condition = f"{comparison.key_text.source} IN ({texts})"
    if comparison.left_out is not None:  # the filter decides about these rows in silver
        condition += f" AND NOT ({comparison.left_out.source})"
    return Chunk(1, schema, condition, rows=len(keys))
