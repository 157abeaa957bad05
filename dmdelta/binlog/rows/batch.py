"""The decoder's output: runs of row changes, their shared fields, and flat lists of row images."""

from dataclasses import dataclass, field
from typing import NamedTuple

from dmdelta.model.change import Op

Run = tuple[int, int, int, int]
"""(rows, seq, number of the first row, index in `shared`). A plain tuple, because one is created for every rows event.
"""


class Shared(NamedTuple):
    """Fields that the rows of one event share, possibly with adjacent events.

    Attributes:
        committed_at: in µs.
        image: column names of the after images, None if they have every column.
        metadata: the VARIANT dictionary of the images, b"" if there are none.
    """

    gtid: str | None
    committed_at: int
    schema: str | None
    table: str | None
    op: Op
    xid: str | None = None
    image: tuple[str, ...] | None = None
    ddl: str | None = None
    version: int | None = None
    metadata: bytes = b""


@dataclass(slots=True)
class ChangeBatch:
    """Changes in log order.

    Attributes:
        runs: the rows of one event each; a run of n rows owns the next n entries of the lists of images.
        shared: the shared fields of runs, each for one or more adjacent runs.
        before, after: VARIANT values of the row images, b"" for rows without one.
        moved: indexes of the updates that change the primary key, in order.
        size: approximate bytes of the decoded events.
    """

    runs: list[Run] = field(default_factory=list)
    shared: list[Shared] = field(default_factory=list)
    before: list[bytes] = field(default_factory=list)
    after: list[bytes] = field(default_factory=list)
    moved: list[int] = field(default_factory=list)
    size: int = 0

    def add_note(self, seq: int, row: int, shared: Shared) -> None:
        """Add one row without images: a DDL, a schema, an XA commit or rollback."""
        self.runs.append((1, seq, row, self.share(shared)))
        self.before.append(b"")
        self.after.append(b"")

    def share(self, shared: Shared) -> int:
        """Add shared fields; returns their index for the following runs."""
        self.shared.append(shared)
        return len(self.shared) - 1
