"""What decoding yields: runs of row changes with the values they share, and flat lists of row images."""

from dataclasses import dataclass, field

from dmdelta.model.change import Op

Run = tuple[
    int,
    int,
    int,
    str | None,
    int,
    str | None,
    str | None,
    Op,
    str | None,
    tuple[str, ...] | None,
    str | None,
    int | None,
    bytes,
]
"""(rows, seq, number of the first row, gtid, committed_at in µs, schema, table, op, xid, image, ddl, schema version,
the VARIANT dictionary of the rows' images, b"" if they have none).

A plain tuple: one is made for every rows event.
"""


@dataclass(slots=True)
class ChangeBatch:
    """Changes in log order.

    Attributes:
        runs: what the rows of one event share; a run of n rows owns the next n entries of the lists.
        before, after: VARIANT values of the row images, b"" where a row has none.
        moved: indexes of the updates that change the primary key, in order.
        size: bytes of events that went in, about.
    """

    runs: list[Run] = field(default_factory=list)
    before: list[bytes] = field(default_factory=list)
    after: list[bytes] = field(default_factory=list)
    moved: list[int] = field(default_factory=list)
    size: int = 0

    def add_note(self, run: Run) -> None:
        """One row without images: a DDL, a schema, an XA verdict."""
        self.runs.append(run)
        self.before.append(b"")
        self.after.append(b"")
