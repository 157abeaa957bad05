"""Tables whose structures must be recorded again, because a snapshot has recorded a structure of theirs.

A snapshot of single tables records each one's structure where its log resumes, which may be behind or ahead of what has
landed. The structures of the log itself have to follow it.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from dmdelta.model.position import Position
from dmdelta.model.schema import TableName


@dataclass(slots=True)
class RepeatedStructures:
    """Used by the landing loop and by the snapshots, in different threads.

    Attributes:
        reading: the tables that a snapshot reads now.
    """

    reading: Callable[[], Collection[TableName]] = frozenset
    _until: dict[TableName, Position] = field(default_factory=dict)

    def written(self, positions: Mapping[TableName, Position]) -> None:
        """A snapshot writes structures at these positions. Called while the tables are still being read."""
        self._until.update(positions)

    def tables(self) -> frozenset[TableName]:
        """The tables whose structure each segment of the next batch records again."""
        return frozenset((*self.reading(), *self._until.copy()))

    def landed(self, begin: Position) -> None:
        """The batch that begins there has landed: it records the structures that follow earlier positions."""
        for name, position in self._until.copy().items():
            if position <= begin:
                self._until.pop(name, None)
