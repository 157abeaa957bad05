"""Ad-hoc snapshots that `dmdelta snapshot` has requested: one is complete once its tables are in silver."""

from collections.abc import Mapping
from dataclasses import dataclass

from dmdelta.config import load_spec
from dmdelta.engine.snapshot.store import ChunkStore
from dmdelta.engine.task.task import open_metadata
from dmdelta.model.schema import TableName
from tests.soak.task import SoakTask


@dataclass(frozen=True)
class SnapshotState:
    """The ad-hoc snapshots of a source, as dm_meta records them.

    Attributes:
        applied: the epoch of the newest one in silver by table; each snapshot has a lower epoch than those before it.
        awaited: the tables that are requested or being read.
    """

    applied: Mapping[TableName, int]
    awaited: frozenset[TableName]


@dataclass(frozen=True)
class RequestedSnapshot:
    """
    Attributes:
        before: the state before the request.
        under_load: it was requested while the sources were written.
    """

    source_id: str
    tables: frozenset[TableName]
    before: SnapshotState
    under_load: bool


def is_complete(requested: RequestedSnapshot, now: SnapshotState) -> bool:
    """Whether a newer snapshot of each table is in silver, and no other one of it is left."""
    newer = [now.applied.get(name, 0) < requested.before.applied.get(name, 0) for name in requested.tables]
    return all(newer) and not requested.tables & now.awaited


def read_snapshots(task: SoakTask, source_id: str) -> SnapshotState:
    """The current state of a source's snapshots.

    Raises:
        LakehouseError: dm_meta cannot be read.
    """
    opened = open_metadata(load_spec(task.spec))
    store = ChunkStore(opened.spark, opened.lakehouse, opened.spec.name, source_id, opened.run)
    return SnapshotState(store.applied_epochs(), store.awaited().tables)
