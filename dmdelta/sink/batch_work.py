"""What a worker executes in one transaction: changes one by one, or rows of one table side by side."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dmdelta.sink import statements
from dmdelta.sink.change import ACTS, Act, Shape
from dmdelta.sink.executed import encode, encode_places
from dmdelta.sink.merger import STATEMENT_CHARACTERS, Style, Work, merged
from dmdelta.sink.net_rows import NetRows


@dataclass(frozen=True, slots=True)
class Single:
    """One statement of a row.

    Attributes:
        seq: where the row is in the log.
    """

    table: str
    identity: str
    seq: int
    statement: str


class BatchWork(Protocol):
    """The work of a transaction; its length counts row changes."""

    def __len__(self) -> int: ...

    def statements(self, style: Style) -> Iterator[str]:
        """In the order of execution."""

    def singly(self, style: Style) -> Iterator[Single]:
        """The same for each row by itself, to find the one that fails."""

    def record(self) -> bytes:
        """The executed events, encoded."""


@dataclass(frozen=True, slots=True)
class ChangeWork:
    """Changes of any tables, in their order."""

    changes: Sequence[Work]

    def __len__(self) -> int:
        return len(self.changes)

    def statements(self, style: Style) -> Iterator[str]:
        return merged(self.changes, style)

    def singly(self, style: Style) -> Iterator[Single]:
        for shape, change in self.changes:
            for statement in merged([(shape, change)], style):
                identity = change.identity if not shape.keyless else "(no key)"
                yield Single(shape.table, identity, change.events[-1][0], statement)

    def record(self) -> bytes:
        return encode(event for _, change in self.changes for event in change.events)


@dataclass(frozen=True, slots=True)
class RowWork:
    """Net changes of rows of one table, in the order of their acts.

    Attributes:
        rows: those of the whole slice.
        chosen: which of them.
        texts: what the statements list of each, with a comma behind it, side by side.
        ends: where each begins in `texts`, and where the last one ends.
    """

    shape: Shape
    rows: NetRows
    chosen: npt.NDArray[np.int64]
    texts: Any
    ends: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.chosen)

    def statements(self, style: Style) -> Iterator[str]:
        acts = self.rows.acts[self.chosen]
        for number, act in enumerate(ACTS):
            first, last = (int(np.searchsorted(acts, number, side=side)) for side in ("left", "right"))
            while first < last:
                # At least one, and as many as a statement takes.
                limit = int(np.searchsorted(self.ends, self.ends[first] + STATEMENT_CHARACTERS, side="right")) - 1
                until = min(last, max(first + 1, limit))
                listed = str(self.texts[self.ends[first] : self.ends[until] - 1], "utf-8")
                yield from _statements(self.shape, act, listed, style, lambda f=first, u=until: self._identities(f, u))
                first = until

    def singly(self, style: Style) -> Iterator[Single]:
        for at, number in enumerate(self.chosen.tolist()):
            one = RowWork(self.shape, self.rows, self.chosen[at : at + 1], self.texts, self.ends[at : at + 2])
            place = int(self.rows.columns.own[self.rows.last[number]])
            for statement in one.statements(style):
                yield Single(self.shape.table, self._identities(at, at + 1)[0], place, statement)

    def record(self) -> bytes:
        events = self.rows.events_of(self.chosen)
        columns = self.rows.columns
        return encode_places(columns.own[events], columns.row[events])

    def _identities(self, first: int, until: int) -> list[str]:
        found: list[str] = self.rows.columns.identity.take(self.rows.last[self.chosen[first:until]]).to_pylist()
        return found


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
