"""Reads all tables at one position: `consistency: snapshot`."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event
from uuid import uuid4

from dmdelta.bronze.landing import land_rows
from dmdelta.changelog.context import SourceContext
from dmdelta.engine.snapshot.chunk_source import ChunkFrames
from dmdelta.engine.snapshot.plan import ChunkBatch
from dmdelta.engine.task.task import Task
from dmdelta.errors import ConfigError
from dmdelta.lakehouse.history import OwnCommit
from dmdelta.logging import get_logger
from dmdelta.source.connection import open_connection
from dmdelta.source.snapshot.barrier import SnapshotBarrier, call, lead

log = get_logger(__name__)


def land_consistent(task: Task, source: SourceContext, frames: ChunkFrames, share: ChunkBatch) -> OwnCommit:
    """Land all chunks as of one position, in one commit.

    Raises:
        ConfigError: the storage engine of a table has no snapshots.
        SourceError, SourceUnavailable: the tables cannot be locked, or readers do not arrive.
        Fenced, LakehouseError: as `land_rows`.
    """
    batch = share.chunks
    unsupported = sorted({str(chunk.schema) for chunk in batch if not chunk.transactional})
    if unsupported:
        raise ConfigError(
            f"consistency: snapshot cannot read {', '.join(unsupported)}: the storage engine has no snapshots",
            hint="exclude the table with the block-allow-list, or use consistency: none",
        )
    meeting = SnapshotBarrier(uuid4().hex, min(task.spec.snapshot.readers, len(batch)))
    over = Event()
    with (
        closing(open_connection(frames.endpoint)) as connection,
        ThreadPoolExecutor(1, thread_name_prefix="snapshot-barrier") as leader,
    ):
        call(connection, meeting)
        led = leader.submit(lead, connection, meeting, over.is_set)
        try:
            frame = frames.bronze_rows_together(batch, meeting)
            commit = land_rows(task.spark, source, frame, share.landed)
        finally:
            over.set()
            led.result()  # raises the leader's failure, which explains that of the readers
    log.info("chunks landed", source=source.source_id, chunks=len(batch), end=str(share.landed.end))
    return commit
