"""What a worker executes in one transaction: single changes, or rows of one table in columnar form."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dmdelta.sink.change import ACTS, Act, Shape
from dmdelta.sink.execute.columnar_compactor import NetRows
from dmdelta.sink.execute.merger import STATEMENT_CHARACTERS, Style, Work, merged
from dmdelta.sink.execution_log import encode, encode_places
from dmdelta.sink.plan import sql as statements


@dataclass(frozen=True, slots=True)
class Single:
    """A statement for one row.

    Attributes:
        seq, row: of its newest change.
    """

    table: str
    seq: int
    row: int
    statement: str


class BatchWork(Protocol):
    """The work of a transaction; its length counts row changes."""

    def __len__(self) -> int: ...

    @property
    def tables(self) -> set[str]:
        """The target's tables, as SQL."""

    def statements(self, style: Style) -> Iterator[str]:
        """In execution order."""

    def singly(self, style: Style) -> Iterator[Single]:
        """The same, one row at a time, to find the row that fails."""

    def record(self) -> bytes:
        """The executed events, encoded."""


@dataclass(frozen=True, slots=True)
class ChangeWork:
    """Changes of any tables, in order."""

    changes: Sequence[Work]

    def __len__(self) -> int:
        return len(self.changes)

    @property
    def tables(self) -> set[str]:
        return {shape.table for shape, _ in self.changes}

    def statements(self, style: Style) -> Iterator[str]:
        return merged(self.changes, style)

    def singly(self, style: Style) -> Iterator[Single]:
        for shape, change in self.changes:
            for statement in merged([(shape, change)], style):
                yield Single(shape.table, *change.events[-1], statement)

    def record(self) -> bytes:
        return encode(event for _, change in self.changes for event in change.events)


@dataclass(frozen=True, slots=True)
class RowWork:
    """Net changes of rows of one table, ordered by act.

    Attributes:
        rows: the net rows of the whole slice.
        chosen: indexes of the rows of this transaction.
        texts: the value lists of the rows for the statements, each followed by a comma, concatenated.
        ends: where each list starts in `texts`, and where the last one ends.
    """

    shape: Shape
    rows: NetRows
    chosen: npt.NDArray[np.int64]
    texts: Any
    ends: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.chosen)

    @property
    def tables(self) -> set[str]:
        return {self.shape.table}

    def statements(self, style: Style) -> Iterator[str]:
        acts = self.rows.acts[self.chosen]
        for number, act in enumerate(ACTS):
            first, last = (int(np.searchsorted(acts, number, side=side)) for side in ("left", "right"))
            while first < last:
                # At least one row, and as many as fit into a statement.
                limit = int(np.searchsorted(self.ends, self.ends[first] + STATEMENT_CHARACTERS, side="right")) - 1
                until = min(last, max(first + 1, limit))
                listed = str(self.texts[self.ends[first] : self.ends[until] - 1], "utf-8")
                yield from _statements(self.shape, act, listed, style, lambda f=first, u=until: self._identities(f, u))
                first = until

    def singly(self, style: Style) -> Iterator[Single]:
        for at, number in enumerate(self.chosen.tolist()):
            one = RowWork(self.shape, self.rows, self.chosen[at : at + 1], self.texts, self.ends[at : at + 2])
            columns, last = self.rows.columns, self.rows.last[number]
            for statement in one.statements(style):
                yield Single(self.shape.table, int(columns.own[last]), int(columns.row[last]), statement)

    def record(self) -> bytes:
        events = self.rows.events_of(self.chosen)
        columns = self.rows.columns
        return encode_places(columns.own[events], columns.row[events])

    def _identities(self, first: int, until: int) -> list[str]:
        identities: list[str] = self.rows.columns.identity.take(self.rows.last[self.chosen[first:until]]).to_pylist()
        return identities


def _statements(shape: Shape, act: Act, listed: str, style: Style, identities: Any) -> Iterator[str]:
    if act is Act.DELETE:
        yield statements.delete(shape, [listed])
    elif act is Act.INSERT:
        yield (statements.replace if style.safe else statements.insert)(shape, [listed])
    elif style.safe:
        yield statements.delete(shape, identities())
        yield statements.replace(shape, [listed])
    else:
        yield statements.upsert(shape, [listed])
