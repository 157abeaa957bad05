"""Expires old row changes from bronze, once no reader of the task needs them."""

from collections.abc import Iterator
from datetime import date, datetime, timezone

from pyspark.sql import SparkSession

from dmdelta.bronze.retention import Expired, expire, first_day_needed, plan_expiry
from dmdelta.checkpoint.store import load_points
from dmdelta.config import SourceConfig
from dmdelta.engine.snapshot.in_target import tables_missing_rows
from dmdelta.engine.snapshot.store import ChunkStore
from dmdelta.engine.task.mapping import target_server
from dmdelta.engine.task.task import Task
from dmdelta.engine.validation.store import VALIDATOR, read_progress
from dmdelta.model.position import Position
from dmdelta.sink.startup import flushed_position
from dmdelta.sink.target.metadata import Metadata


def day_to_expire_before(task: Task, days: int) -> date | None:
    """The day before which row changes may expire; None if a reader of bronze has not started: it needs all of it.

    Raises:
        SinkError: the sink's target does not report its checkpoint.
        LakehouseError: a table cannot be read.
    """
    today, needed = datetime.now(timezone.utc).date(), list[date]()
    for source in task.spec.sources:
        for position in _read_to(task, source):
            if position is None:
                return None
            day = first_day_needed(task.spark, task.lakehouse.bronze, source.source_id, position)
            needed += [day] if day is not None else []
    return plan_expiry(today, days, needed)


def expire_bronze(task: Task, spark: SparkSession) -> Expired | None:
    """Expire row changes according to `maintenance.bronze-days`; None if there were none, or it is not set.

    Raises:
        CommitConflict: another process changes bronze's properties.
        SinkError, LakehouseError: as `day_to_expire_before`; bronze cannot be written.
    """
    days = task.spec.maintenance.bronze_days
    before = day_to_expire_before(task, days) if days is not None else None
    return expire(spark, task.lakehouse.bronze, before) if before is not None else None


def _read_to(task: Task, source: SourceConfig) -> Iterator[Position | None]:
    """The flushed position of each reader of a source's log; None for one that needs all of it."""
    spark, lakehouse, name = task.spark, task.lakehouse, task.spec.name
    stored = load_points(spark, lakehouse, name, source.source_id)
    yield stored.global_point.position if stored is not None else None
    if ChunkStore(spark, lakehouse, name, source.source_id, task.run).awaited().tables:
        yield None  # an ad-hoc snapshot's rows are not in silver yet
    if (config := task.spec.sink) is not None:
        metadata = Metadata(config.metadata, name, source.source_id, task.run)
        yield flushed_position(target_server(config), metadata)
        if tables_missing_rows(task, source.source_id):
            yield None
    if task.spec.validator.mode != "none":
        known = read_progress(VALIDATOR.of(spark, lakehouse, name)).get(source.source_id)
        yield from (known[0].position, *known[0].left.values()) if known is not None else (None,)
