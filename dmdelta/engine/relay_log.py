"""The relayed log on disk, as people see it: how much there is of it, and what of it may go."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from dmdelta.bronze.landing import landing_app
from dmdelta.config import SourceConfig, TaskSpec
from dmdelta.engine.relaying import relay_task
from dmdelta.engine.task import Task, open_task
from dmdelta.lakehouse.history import newest_own_commit
from dmdelta.model.position import Position
from dmdelta.model.segment import Segment
from dmdelta.segments import list_segments
from dmdelta.source.purge import PurgePolicy, landed_segments, plan_purge, purge
from dmdelta.source.task import read_status


@dataclass(frozen=True, slots=True)
class RelayLog:
    """The segments of one source.

    Attributes:
        state: what the relay was last doing; None if it never ran.
        begins, ends: of the segments; None without any.
        landed_to: what is before it is in bronze.
        landed_bytes: of the log, in segments that have landed and may be purged.
        free_bytes: of the disk that they are on.
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
    """What was removed of one source's segments: so many, which held so many bytes of the log."""

    source_id: str
    segments: int
    bytes: int


def relay_logs(spec: TaskSpec) -> list[RelayLog]:
    """What each relay folder holds; nothing of a source that was never relayed.

    Raises:
        CorruptBinlog: segments do not join.
        LakehouseError: bronze cannot be read.
    """
    task = open_task(spec, writing=False)
    return [_log(task, source, folder) for source, folder in _relayed(spec)]


def purge_relay(spec: TaskSpec, expires: timedelta) -> list[PurgedLog]:
    """Remove the segments that have landed and were cut so long ago, of each source. The task may run meanwhile.

    Raises:
        CorruptBinlog: segments do not join.
        LakehouseError: bronze cannot be read.
    """
    task, purged = open_task(spec, writing=False), list[PurgedLog]()
    for source, folder in _relayed(spec):
        segments, landed = _segments(task, source, folder)
        old = landed_segments(segments, landed) if landed is not None else []
        chosen = plan_purge(old, datetime.now(timezone.utc), 0, PurgePolicy(expires, 0))
        purged.append(PurgedLog(source.source_id, len(chosen), purge(chosen)))
    return purged


def _relayed(spec: TaskSpec) -> list[tuple[SourceConfig, Path]]:
    """The sources that were ever relayed, and where to."""
    folders = [(source, relay_task(spec, source, until_caught_up=True).folder) for source in spec.sources]
    return [(source, folder) for source, folder in folders if folder.is_dir()]


def _log(task: Task, source: SourceConfig, folder: Path) -> RelayLog:
    segments, landed = _segments(task, source, folder)
    status = read_status(folder)
    return RelayLog(
        source.source_id,
        status.state if status else None,
        str(folder),
        segments[0].begin_position if segments else None,
        segments[-1].end_position if segments else None,
        landed,
        len(segments),
        sum(segment.size for segment in segments),
        sum(old.segment.size for old in landed_segments(segments, landed)) if landed is not None else 0,
        shutil.disk_usage(folder).free,
    )


def _segments(task: Task, source: SourceConfig, folder: Path) -> tuple[Sequence[Segment], Position | None]:
    """A source's segments, and where bronze ends."""
    app = landing_app(task.spec.name, source.source_id)
    # Bronze first: what lands meanwhile only stays a little longer.
    landed = newest_own_commit(task.spark, task.lakehouse.bronze, app)
    return list_segments(folder, source.source_id), landed.tag.end if landed else None
