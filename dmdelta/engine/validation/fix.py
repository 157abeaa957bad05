"""Putting silver right: rows that differ are read from the source again, and the log goes on over them.

As an ad-hoc snapshot of single rows: they are older than any log, and what of the log may be in them already is applied
in safe mode. The commit is one of the table's own, which says so.
"""

from collections.abc import Sequence
from dataclasses import replace

from dmdelta.engine.control.exclusive import exclusive_access
from dmdelta.engine.snapshot.chunk_source import ChunkFrames
from dmdelta.engine.task.task import Task
from dmdelta.errors import ConfigError, QualityError
from dmdelta.lakehouse.history import CommitTag
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema
from dmdelta.model.spark_sql import literal, quote
from dmdelta.quality.reconcile import Comparison
from dmdelta.silver.apply.direct_load import read_rows_of
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.history.repair import FOUND, GONE, repair_rows, table_version
from dmdelta.silver.table.shard_rows import as_held, seen_whole, shard_rows
from dmdelta.source.endpoint import Endpoint
from dmdelta.source.snapshot.chunk import Chunk
from dmdelta.source.snapshot.planner import snapshot_end

MAX_KEYS = 10_000
"""Of more rows, the whole table is read sooner."""
FIXED_EPOCH = -(1 << 31)
"""Of rows that were put right: older than all else."""


def fix_rows(
    task: Task,
    side: SilverContext,
    endpoint: Endpoint,
    comparison: Comparison,
    schema: TableSchema,
    keys: Sequence[str],
) -> None:
    """Have silver hold the rows of some keys as the source holds them, while the task stands still.

    Args:
        keys: canonical texts.

    Raises:
        ConfigError: the table has no key. QualityError: there are too many.
        DmdeltaError: the source cannot be read, or silver not written.
    """
    spark, target = task.spark, side.table(schema.name)
    if not schema.primary_key:
        raise ConfigError(
            f"{schema} has no key: single rows cannot be put right",
            hint=f"have it read again: dmdelta snapshot SPEC --table {schema}",
        )
    if len(keys) > MAX_KEYS:
        raise QualityError(
            f"{len(keys):,} rows of {schema} differ", hint=f"have it read again: dmdelta snapshot SPEC --table {schema}"
        )
    apart = task.lakehouse.metadata(f"{task.spec.name}_fix")
    with exclusive_access(task.spec):
        frames = ChunkFrames(spark, endpoint, side.source_id, side.flavor, FIXED_EPOCH)
        read = read_rows_of(frames.table_rows([_chunk(comparison, schema, keys)]), schema, target)
        # Written once: reading the source twice might give two answers.
        with wrapped(apart, "writing"):
            read.write.format("delta").mode("overwrite").option("overwriteSchema", "true").saveAsTable(apart)
        end = snapshot_end(endpoint)
        at = table_version(spark, target).commit.tag
        until = Position(at.end.epoch, end.binlog_file, end.offset)
        live = spark.table(target.place)
        columns, own_key = list(map(quote, live.columns)), list(seen_whole(target, schema, live).primary_key)
        fixed = as_held(spark.table(apart), live).selectExpr(*columns, f"false AS {GONE}", f"false AS {FOUND}")
        wrong = shard_rows(target, live).where(f"{comparison.key_text.silver} IN ({', '.join(map(literal, keys))})")
        gone = wrong.join(fixed.select(*own_key), own_key, "left_anti")
        rows = fixed.unionAll(gone.selectExpr(*columns, f"true AS {GONE}", f"true AS {FOUND}"))

        def next_tag() -> CommitTag:
            newest = table_version(spark, target).commit.tag
            later = max(until, newest.safe_until or until)
            return replace(newest, version=newest.version + 1, run=task.run, begin=newest.end, safe_until=later)

        repair_rows(spark, target.place, rows, own_key, next_tag)


def _chunk(comparison: Comparison, schema: TableSchema, keys: Sequence[str]) -> Chunk:
    """What is read of the source again."""
    texts = ", ".join(f"CONVERT(X'{key.encode().hex()}' USING utf8mb4)" for key in keys)
    condition = f"{comparison.key_text.source} IN ({texts})"
    if comparison.left_out is not None:  # silver has these rows as the filter has left them
        condition += f" AND NOT ({comparison.left_out.source})"
    return Chunk(1, schema, condition, rows=len(keys))
