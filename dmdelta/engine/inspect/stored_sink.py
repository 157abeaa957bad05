"""The sink's part of a stored status: its checkpoint in the target, and the tables whose rows it lacks."""

from dataclasses import dataclass

from dmdelta.config import SinkConfig
from dmdelta.engine.snapshot.in_target import tables_missing_rows
from dmdelta.engine.task.mapping import target_server
from dmdelta.engine.task.task import Task
from dmdelta.errors import SinkError
from dmdelta.model.position import Position
from dmdelta.sink.startup import flushed_position
from dmdelta.sink.target.metadata import Metadata


@dataclass(frozen=True, slots=True)
class StoredSink:
    """The state of a source's sink.

    Attributes:
        position: its flushed checkpoint.
        error: why the target cannot be read.
        lag_bytes: of the log, from its position to the end of bronze; None across files.
        lacks: tables whose snapshot the target does not have yet; none if it cannot be read.
    """

    position: str | None = None
    error: str | None = None
    lag_bytes: int | None = None
    lacks: tuple[str, ...] = ()


def read_sink(task: Task, config: SinkConfig, source_id: str, landed: Position | None) -> StoredSink:
    """Read a source's checkpoint in the target. A target that does not answer is an error in the result.

    Raises:
        LakehouseError: dm_meta cannot be read.
    """
    try:
        metadata = Metadata(config.metadata, task.spec.name, source_id, task.run)
        position = flushed_position(target_server(config), metadata)
        lacks = tuple(".".join(name) for name in tables_missing_rows(task, source_id))
    except SinkError as error:
        return StoredSink(error=error.message)
    text = str(position) if position else None
    if position is None or landed is None or position.binlog_file != landed.binlog_file:
        return StoredSink(text, lacks=lacks)
    return StoredSink(text, lag_bytes=max(0, landed.offset - position.offset), lacks=lacks)
