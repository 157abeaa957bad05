"""Putting the sink of a source together, if the spec has one."""

from dataclasses import replace
from functools import partial

from dmdelta.bronze.landed_ranges import LaterLogs
from dmdelta.engine.ingest.queue import RangeQueue
from dmdelta.engine.relay.supervisor import Relaying
from dmdelta.engine.run.source_start import SourceStart
from dmdelta.engine.sink import SinkingLoop, shard_log, sink_settings
from dmdelta.engine.snapshot.ad_hoc import open_feed
from dmdelta.engine.task.mapping import sinks_passing_rows
from dmdelta.engine.task.overrides import read_operators
from dmdelta.engine.task.task import Task
from dmdelta.lakehouse.session import clone_session
from dmdelta.sharding import Coordination
from dmdelta.silver.apply.quarantine_marks import QuarantineMarks
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.sink.shards import SinkShards
from dmdelta.source.relay.relay_dir import log_end_of


def open_sinking(
    task: Task, relaying: Relaying, start: SourceStart, landed_ranges: RangeQueue, context: SilverContext
) -> SinkingLoop | None:
    """The sink's loop, which receives what lands from now on, and what ad-hoc snapshots read; None without a sink.

    Args:
        landed_ranges: the queue of silver, which the sink's own queue follows.

    Raises:
        LakehouseError: the overrides or the plans of the snapshots cannot be read.
    """
    config, source = task.spec.sink, start.source
    if config is None:
        return None
    ahead = RangeQueue()
    landed_ranges.follow_with(ahead)
    operators = read_operators(task.spark, task.lakehouse, task.spec.name, source.source_id)
    rules = replace(task.rules(source.source_id), operators=operators)
    own, spark = replace(source, rules=rules), clone_session(task.spark)
    settings = replace(sink_settings(task.spec, config), structure_at=shard_log(spark, own).structure)
    if sinks_passing_rows(task.spec):
        settings = replace(settings, quarantining=QuarantineMarks(context))
    feed = open_feed(start.chunks, start.joining, source.flavor)
    if relaying.task.endpoint is None:
        feed.close()  # an archive has no tables to read
    later = LaterLogs(spark, own, partial(log_end_of, relaying.folder))
    return SinkingLoop(spark, own, settings, ahead, feed, rest=later.rest)


def coordinate_sink(
    task: Task, relaying: Relaying, sinking: SinkingLoop | None, coordination: Coordination | None
) -> None:
    """Register the shards of a source, so that those of the others wait for them."""
    if sinking is None or coordination is None or coordination.mode is None:
        return
    sinking.shards = SinkShards(
        relaying.source_id,
        sinking.source.rules,
        coordination,
        len(task.spec.sources),
        shard_log(sinking.spark, sinking.source),
        {schema.name: schema for schema in relaying.read_catalog()},
    )
    sinking.shards.register()
    coordination.begins()
