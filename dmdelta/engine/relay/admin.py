"""The relay log on disk for operators: its extent, and which segments may be removed."""

import shutil
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from dmdelta.bronze.progress import landing_app
from dmdelta.config import SourceConfig, TaskSpec
from dmdelta.engine.task.mapping import relay_task
from dmdelta.engine.task.task import Task, open_metadata
from dmdelta.lakehouse.history import newest_own_commit
from dmdelta.model.position import Position
from dmdelta.segments import list_segments
from dmdelta.source.relay.purge import Known, PurgePolicy, landed_segments, plan_purge, purge
from dmdelta.source.relay.relay_task import read_status


@dataclass(frozen=True, slots=True)
class RelayLog:
    """The segments of one source.

    Attributes:
        state: the last state of the relay; None if it never ran.
        begins, ends: of the segments; None without any.
        landed_to: everything before it is in bronze.
        landed_bytes: bytes of the log in segments that have landed and may be purged.
        free_bytes: free bytes of their disk.
    """

    source_id: str
    state: str | None
    folder: str
    begins: Position | None
    ends: Position | None
    landed_to: Position | None
    segments: int
    bytes: int
    landed_bytes: int
    free_bytes: int


@dataclass(frozen=True, slots=True)
class PurgedLog:
    """The segments removed from one source, and the bytes of the log that they held."""

    source_id: str
    segments: int
    bytes: int


def relay_logs(spec: TaskSpec) -> list[RelayLog]:
    """The contents of each relay folder; nothing for a source that was never relayed.

    Raises:
        CorruptBinlog: segments are not contiguous.
        LakehouseError: bronze cannot be read.
    """
    task = open_metadata(spec)
    found = [(source.source_id, folder, landed_end(task, source)) for source, folder in _relayed(spec)]
    return [relay_log(name, folder, landed.position if landed else None) for name, folder, landed in found]


def purge_relay(spec: TaskSpec, expires: timedelta) -> list[PurgedLog]:
    """Remove landed segments older than `expires`, of each source. The task may run meanwhile.

    Raises:
        CorruptBinlog: segments are not contiguous.
        LakehouseError: bronze cannot be read.
    """
    task, purged = open_metadata(spec), list[PurgedLog]()
    for source, folder in _relayed(spec):
        landed = landed_end(task, source)  # first: segments that land meanwhile are only kept a little longer
        purged.append(_purged(source.source_id, folder, landed, expires))
    return purged


def _purged(source_id: str, folder: Path, landed: Known | None, expires: timedelta) -> PurgedLog:
    segments = list_segments(folder, source_id)
    if landed is None:
        return PurgedLog(source_id, 0, 0)
    old = landed_segments(segments, landed.position)
    chosen = plan_purge(old, datetime.now(timezone.utc), 0, PurgePolicy(expires, 0))
    return PurgedLog(source_id, len(chosen), purge(chosen, landed))


def _relayed(spec: TaskSpec) -> list[tuple[SourceConfig, Path]]:
    """The sources that were ever relayed, and their folders."""
    folders = [(source, relay_task(spec, source, until_caught_up=True).folder) for source in spec.sources]
    return [(source, folder) for source, folder in folders if folder.is_dir()]


def relay_log(source_id: str, folder: Path, landed: Position | None) -> RelayLog:
    """The contents of a relay folder; `landed` is the end of bronze.

    Raises:
        CorruptBinlog: segments are not contiguous.
    """
    segments = list_segments(folder, source_id)
    status = read_status(folder)
    return RelayLog(
        source_id=source_id,
        state=status.state if status else None,
        folder=str(folder),
        begins=segments[0].begin_position if segments else None,
        ends=segments[-1].end_position if segments else None,
        landed_to=landed,
        segments=len(segments),
        bytes=sum(segment.size for segment in segments),
        landed_bytes=sum(old.segment.size for old in landed_segments(segments, landed)) if landed is not None else 0,
        free_bytes=shutil.disk_usage(folder).free,
    )


def landed_end(task: Task, source: SourceConfig) -> Known | None:
    """The end of bronze; None before anything has landed.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    landed = newest_own_commit(task.spark, task.lakehouse.bronze, landing_app(task.spec.name, source.source_id))
    return Known(landed.tag.end, landed.tag.gtid_set or "") if landed else None
