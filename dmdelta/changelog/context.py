"""The facts about a source that all its stages share: its identity, its rules and its lakehouse."""

from dataclasses import dataclass, field

from dmdelta.changelog.batch_memory import BatchMemory
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.model.gtid import Flavor
from dmdelta.rules import SourceRules


@dataclass(frozen=True, slots=True)
class SourceContext:
    """One source of a task.

    Attributes:
        run: tells this process's commits from another's.
        flavor: of the source's statements and GTIDs.
        rules: which of its tables, events and rows count, and where they go.
        memory: the newest landed rows; empty except during a run.
    """

    lakehouse: Lakehouse
    task: str
    source_id: str
    run: str
    flavor: Flavor
    rules: SourceRules
    memory: BatchMemory = field(default_factory=BatchMemory, compare=False, repr=False)

    @property
    def bronze(self) -> str:
        """The SQL identifier of the bronze table."""
        return self.lakehouse.bronze
