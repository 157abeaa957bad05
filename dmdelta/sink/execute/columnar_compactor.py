"""The compactor for many rows at once: the same algebra as `compactor`, in columnar form, for independent rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dmdelta.changelog.variant_arrays import TEXT
from dmdelta.sink.change import ACTS, Act
from dmdelta.sink.read.columns import Columns, Numbers
from dmdelta.sink.read.literals import joined

_DELETE, _UPDATE, _INSERT = (ACTS.index(act) for act in (Act.DELETE, Act.UPDATE, Act.INSERT))


@dataclass(frozen=True, slots=True)
class NetRows:
    """One net change per row.

    Attributes:
        columns: the changes that they replace.
        acts: the net act of each row, an index into `ACTS`.
        last: each row's last change.
        keys: the keys of each row; a single text if `single`.
        sorted, ends: the changes grouped by row, and where each row's group starts.
    """

    columns: Columns
    acts: npt.NDArray[np.int8]
    last: Numbers
    keys: Sequence[str] | Sequence[Sequence[str]]
    single: bool
    sorted: Numbers = field(repr=False)
    ends: Numbers = field(repr=False)

    def __len__(self) -> int:
        return len(self.acts)

    def events_of(self, chosen: Numbers) -> Numbers:
        """All changes of some rows."""
        if len(self.acts) == len(self.columns):
            return self.last[chosen]
        counts = (self.ends[1:] - self.ends[:-1])[chosen]
        begins = np.repeat(self.ends[chosen] - (np.cumsum(counts) - counts), counts)
        return self.sorted[begins + np.arange(int(counts.sum()))]

    def listed(self, order: Numbers) -> Any:
        """The statement text of rows in an order, each followed by a comma: a delete's key, else the new values."""
        columns, last = self.columns, pa.array(self.last[order])
        values = columns.values.take(last)
        if values.null_count:
            values = pc.if_else(pa.array(self.acts[order] == _DELETE), columns.identity.take(last), values)
        return joined(values, ",")


def net_rows(columns: Columns) -> NetRows | None:
    """The net change of each row; None if rows may exchange keys."""
    if columns.was.null_count < len(columns) or not columns.whole or columns.sets is not None:
        return None
    identities = columns.identity.dictionary_encode()
    rows = identities.indices.to_numpy().astype(np.int64)
    count, every = len(identities.dictionary), np.arange(len(rows))
    if not _independent(columns, rows):
        return None
    first, last = np.empty(count, np.int64), np.empty(count, np.int64)
    last[rows] = every
    first[rows[::-1]] = every[::-1]
    acts = np.where(columns.acts[first] == _INSERT, _INSERT, _UPDATE).astype(np.int8)
    acts[columns.acts[last] == _DELETE] = _DELETE
    order = np.argsort(rows, kind="stable")
    ends = np.searchsorted(rows[order], np.arange(count + 1))
    single = len(columns.new) == 1
    keys = columns.new[0].take(pa.array(last)).to_pylist() if single else _keys(columns, rows, count)
    return NetRows(columns=columns, acts=acts, last=last, keys=keys, single=single, sorted=order, ends=ends)


def _independent(columns: Columns, rows: Numbers) -> bool:
    """No key belongs to two rows."""
    every = [*columns.new, *columns.old]
    keys = pa.chunked_array([array.cast(TEXT) for array in every]).combine_chunks().dictionary_encode()
    numbers = pc.fill_null(keys.indices, -1).to_numpy().astype(np.int64)
    held = numbers >= 0
    numbers, owners = numbers[held], np.tile(rows, len(every))[held]
    owner = np.empty(len(keys.dictionary), np.int64)
    owner[numbers] = owners
    return bool((owner[numbers] == owners).all())


def _keys(columns: Columns, rows: Numbers, count: int) -> list[list[str]]:
    keys: list[list[str]] = [[] for _ in range(count)]
    for array in (*columns.new, *columns.old):
        for row, key in zip(rows.tolist(), cast("list[str | None]", array.to_pylist()), strict=True):
            if key is not None:
                keys[row].append(key)
    return keys
