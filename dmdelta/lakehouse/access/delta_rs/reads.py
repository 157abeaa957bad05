"""What delta-rs reads alike from a folder of this machine and from an object store."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

from dmdelta.errors import UnsupportedTable
from dmdelta.lakehouse.access.interface import Condition, MetadataRow, NewestBy

if TYPE_CHECKING:
    from dmdelta.lakehouse.access.arrow_rows import DataFiles

LOOKS = 12
"""How often a history is read again because another process has committed meanwhile."""
_FEATURES = 7
"""The writer version of tables that list their features."""
_PLAIN_FEATURES = frozenset({"appendOnly", "invariants"})
_VARIANT = frozenset({"variantType"})


class DeltaRsReads(ABC):
    """Reads rows and properties of a table; a failure raises the error of `_reading`."""

    __slots__ = ()

    @abstractmethod
    def _reading(self, what: str) -> AbstractContextManager[None]:
        """The boundary to delta-rs' exceptions while `what` is read, for example "the rows of"."""

    @abstractmethod
    def _open(self) -> DeltaTable | None:
        """The table in its newest version; None if there is none."""

    @abstractmethod
    def _data(self, opened: DeltaTable) -> "DataFiles":
        """The data files of a version."""

    def newest(self, by: NewestBy, conditions: Sequence[Condition] = ()) -> list[MetadataRow]:
        """The newest row of each key among those that fulfil all conditions. Reads the table in parts.

        Raises:
            UnsupportedTable: delta-rs cannot read the table.
            LakehouseError: the table cannot be read.
        """
        from dmdelta.lakehouse.access.arrow_rows import newest_rows  # noqa: PLC0415 - PyArrow is not needed for commits

        with self._reading("the rows of"):
            opened = self._open()
            return [] if opened is None else newest_rows(self._data(opened), by, conditions)

    def rows(self, conditions: Sequence[Condition] = (), columns: Sequence[str] | None = None) -> list[MetadataRow]:
        """The rows that fulfil all conditions, in no particular order; only these columns, or all.

        Raises:
            UnsupportedTable: delta-rs cannot read the table.
            LakehouseError: the table cannot be read.
        """
        from dmdelta.lakehouse.access.arrow_rows import matching_rows  # noqa: PLC0415

        with self._reading("the rows of"):
            opened = self._open()
            return [] if opened is None else matching_rows(self._data(opened), conditions, columns)

    def properties(self) -> Mapping[str, str] | None:
        """The table's properties; None if it does not exist.

        Raises:
            UnsupportedTable: delta-rs cannot read the table.
            LakehouseError: the table cannot be read.
        """
        with self._reading("the properties of"):
            opened = self._open()
            return None if opened is None else opened.metadata().configuration


def is_plain(opened: DeltaTable, *, variants: bool = False) -> bool:
    """Whether a table has no features that change how rows are stored; with `variants`, except VARIANT columns."""
    protocol = opened.protocol()
    features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    lists_features = protocol.min_writer_version == _FEATURES
    allowed = _PLAIN_FEATURES | _VARIANT if variants else _PLAIN_FEATURES
    return features <= allowed if lists_features else protocol.min_writer_version <= 2


def commit_info(commit: str) -> Mapping[str, Any] | None:
    """What a commit says about itself; None if it says nothing.

    Args:
        commit: the content of its file: an action in JSON on each line.
    """
    return next(_actions(commit, "commitInfo"), None)


def _actions(commit: str, kind: str) -> Iterator[Mapping[str, Any]]:
    """The actions of one kind; only lines with its name are parsed.

    `str.splitlines` would also split at U+2028 and U+0085, which JSON strings contain as they are.
    """
    candidates = (json.loads(line) for line in commit.split("\n") if f'"{kind}"' in line)
    return (action[kind] for action in candidates if kind in action)


def highest_added(table: str, commit: str, column: str) -> Any:
    """The highest value of a column in the files that a commit adds, by their statistics; None if it adds no rows.

    Args:
        commit: the content of its file.

    Raises:
        UnsupportedTable: the files have no statistics of the column.
    """
    statistics = [json.loads(file.get("stats") or "{}") for file in _actions(commit, "add")]
    highest = [one.get("maxValues", {}).get(column) for one in statistics if one.get("numRecords") != 0]
    if any(value is None for value in highest):
        raise UnsupportedTable(
            f"files of {table} have no statistics of {column}", hint="use a command that starts Spark"
        )
    return max(highest, default=None)
