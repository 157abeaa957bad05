"""Lists the tables whose newest ad-hoc snapshot is in silver but not yet in the sink's target."""

from dmdelta.engine.snapshot.store import ChunkStore
from dmdelta.engine.task.mapping import target_server
from dmdelta.engine.task.task import Task
from dmdelta.model.schema import TableName
from dmdelta.sink.startup import reloaded_tables
from dmdelta.sink.target.metadata import Metadata


def tables_missing_rows(task: Task, source_id: str) -> list[TableName]:
    """The tables of which the target does not have yet what the newest ad-hoc snapshot has read. Empty without a sink.

    Raises:
        SinkError: the target does not answer or refuses.
        LakehouseError: the snapshots cannot be read.
    """
    config = task.spec.sink
    if config is None:
        return []
    newest = ChunkStore(task.spark, task.lakehouse, task.spec.name, source_id, task.run).applied_epochs()
    if not newest:
        return []
    metadata = Metadata(config.metadata, task.spec.name, source_id, task.run)
    done = reloaded_tables(target_server(config), metadata)
    return sorted(name for name, epoch in newest.items() if done.get(name, 0) > epoch)
