"""A range of the log as numeric columns: which tables change where, and where transactions start."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from dmdelta.model.change import ROW_OPS, Op

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TableLine:
    """Row changes of a table under one structure in a bucket of the log, between two statements; see `slices.Rows`."""

    version: int
    ops: frozenset[str]
    partial: int
    moves: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class LogLines:
    """
    Attributes:
        ops: the operations that occur; `op` holds indexes into them.
        transaction: equal for all rows of a transaction.
    """

    seq: Numbers
    bucket: Numbers
    ops: Sequence[Op]
    op: Numbers
    version: Numbers
    partial: npt.NDArray[np.bool_]
    moves: npt.NDArray[np.bool_]
    transaction: Numbers

    @classmethod
    def of(cls, table: Any, first: int, size: int) -> "LogLines":
        """From columns seq, op, schema_version, partial, key_changed and transaction.

        Args:
            first: `seq` at which the range starts.
            size: bytes of a bucket.
        """
        # NULLs are filled with -1 or False: none of the numbers is negative.
        seq = table.column("seq").to_numpy()
        order = np.argsort(seq, kind="stable")
        ops = table.column("op").combine_chunks().dictionary_encode()
        names = [Op(op) for op in ops.dictionary.to_pylist()]
        plain = {name: table.column(name).combine_chunks() for name in ("partial", "key_changed", "schema_version")}
        moves = pc.fill_null(plain["key_changed"], False).to_numpy(zero_copy_only=False)
        return cls(
            seq[order],
            (seq[order] - first) // size,
            names,
            ops.indices.to_numpy().astype(np.int64)[order],
            pc.fill_null(plain["schema_version"], -1).to_numpy()[order],
            plain["partial"].to_numpy(zero_copy_only=False)[order],
            moves[order],
            table.column("transaction").to_numpy()[order],
        )

    def tables(self) -> list[TableLine]:
        """The changed tables of each bucket, between its statements: a table may exist only before and after some."""
        changes = np.flatnonzero(self._is(ROW_OPS))
        statements = np.unique(self.seq[self._is((Op.DDL, Op.TRUNCATE))])
        before = np.searchsorted(statements, self.seq[changes], side="right")
        # Both grow with the log, so their sum does in each step, too.
        parts = np.split(changes, np.flatnonzero(np.diff(self.bucket[changes] + before)) + 1)
        lines: list[TableLine] = []
        for part in parts if len(changes) else ():
            for version in np.unique(self.version[part]):
                these = part[self.version[part] == version]
                ops = frozenset(self.ops[number].value for number in np.unique(self.op[these]))
                partial, moves = (int(np.count_nonzero(marks[these])) for marks in (self.partial, self.moves))
                first, last = int(self.seq[these[0]]), int(self.seq[these[-1]])
                lines.append(TableLine(int(version), ops, partial, moves, first, last))
        return lines

    def cuts(self) -> list[tuple[int, bool]]:
        """For each bucket but the first: the start of its first transaction, and True; without one, its first row."""
        counted = self._is((*ROW_OPS, Op.XA_COMMIT))
        seq, transaction = self.seq[counted], self.transaction[counted]
        firsts = np.unique(self.bucket[counted], return_index=True)[1]
        begins = np.flatnonzero(transaction[1:] != transaction[:-1]) + 1
        cuts: list[tuple[int, bool]] = []
        for first, end in zip(firsts[1:].tolist(), [*firsts[2:].tolist(), len(seq)], strict=False):
            boundary = begins[np.searchsorted(begins, first) :][:1]
            within = len(boundary) > 0 and boundary[0] < end
            cuts.append((int(seq[boundary[0] if within else first]), within))
        return cuts

    def _is(self, ops: Collection[Op]) -> npt.NDArray[np.bool_]:
        return np.isin(self.op, [number for number, op in enumerate(self.ops) if op in ops])
