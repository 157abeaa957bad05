"""The sink's settings, which the engine takes from the spec."""

from collections.abc import Callable
from dataclasses import dataclass

from dmdelta.changelog.row_marks import Quarantining
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.sink.target.connection import TargetServer

StructureAt = Callable[[TableName, Position], TableSchema | None]
"""The structure of a source table at a position; None if it is unknown or the table is dropped."""


def unknown_structure(_name: TableName, _at: Position) -> TableSchema | None:
    """A `StructureAt` that knows no table."""
    return None


@dataclass(frozen=True, slots=True)
class SinkSettings:
    """The keys of the spec's section `sink` (`flush_interval` and `safe_mode_duration` in seconds), and what the engine
    knows of the task.

    Attributes:
        sources: number of the task's sources.
        quarantining: which rows silver quarantines, which are then not executed; None: all rows are.
        structure_at: the structures by which filters decide on a statement, as silver's do.
    """

    server: TargetServer
    metadata: str = "dm_meta"
    workers: int = 16
    batch: int = 100
    compact: bool = True
    multiple_rows: bool = True
    synchronous: bool = False
    safe_mode: bool = False
    safe_mode_duration: float = 60.0
    flush_interval: float = 30.0
    sources: int = 1
    quarantining: Quarantining | None = None
    structure_at: StructureAt = unknown_structure

    @property
    def compacts(self) -> bool:
        """Compaction reorders rows, which checked foreign keys do not allow."""
        return self.compact and not self.server.foreign_key_checks
