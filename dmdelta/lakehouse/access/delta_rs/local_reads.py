"""What delta-rs reads from a folder of this machine, without Spark: histories, rows, statistics and properties."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from dmdelta.errors import LakehouseError, UnsupportedTable
from dmdelta.lakehouse.access.commit_log import Commit
from dmdelta.lakehouse.access.commit_times import commit_file, listed_versions, timed_commits
from dmdelta.lakehouse.access.delta_rs.errors import translated
from dmdelta.lakehouse.access.delta_rs.reads import LOOKS, DeltaRsReads, commit_info, highest_added, is_plain

if TYPE_CHECKING:
    import pyarrow as pa

    from dmdelta.lakehouse.access.arrow_rows import DataFiles

LOOK_SECONDS = 0.01
"""How much the wait before a history is read again grows."""
_PLAIN: set[tuple[Path, bool]] = set()
"""Tables that have been found plain, and with which question: they stay so, unless their properties are changed by
hand."""
KEPT_COMMITS = 50
"""After so many commits a kept table is opened again: delta-rs takes longer for each commit that it continues over."""
_KEPT = threading.local()
"""The table that a thread accessed last with `_kept_open`."""
_KNOWN: set[Path] = set()
"""Tables that delta-rs has opened: it knows their features, unless others are added by hand."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A table that was opened at version `first`, and that is known up to a commit.

    Attributes:
        commit: that commit's file: if there is another one with its name, another table is in the place of this one.
        written: its inode and its time, in ns.
    """

    opened: DeltaTable
    first: int
    commit: Path
    written: tuple[int, int]

    def updated(self, log: Path) -> DeltaTable | None:
        """The table in its newest version; None if it has to be opened: another table has this log, or it is old."""
        if self.commit.parent != log or _written(self.commit) != self.written:
            return None
        with suppress(Exception):  # a part of the log that is not needed to open the table may have been removed
            self.opened.update_incremental()
            return self.opened if self.opened.version() - self.first < KEPT_COMMITS else None
        return None


def _written(file: Path) -> tuple[int, int] | None:
    """The inode of a file and its time, in ns; None if there is none."""
    with suppress(FileNotFoundError, NotADirectoryError):
        found = file.stat()
        return found.st_ino, found.st_mtime_ns
    return None


@dataclass(frozen=True, slots=True)
class LocalReads(DeltaRsReads):
    """The table in a folder; thread-safe.

    Attributes:
        table: its SQL identifier, for messages.
    """

    table: str
    folder: Path

    @property
    def log(self) -> Path:
        """The folder of its log."""
        return self.folder / "_delta_log"

    def commits(self, limit: int | None) -> list[Commit]:
        """The newest `limit` commits, newest first, with the versions and times of DESCRIBE HISTORY.

        Raises:
            UnsupportedTable: a commit says nothing about itself.
            LakehouseError: the table cannot be read.
        """
        # Without delta-rs, which reads the log since the last checkpoint to open a table: this needs the end of it.
        with self._reading("the history of"):
            if not self._is_known():
                return []
            for number in range(LOOKS):
                time.sleep(LOOK_SECONDS * number)  # at once, then later and later: another process is cleaning the log
                with suppress(FileNotFoundError):  # a file was removed that had been listed
                    versions = listed_versions(self.log, limit)
                    return timed_commits(self.log, versions, [self._info(version) for version in versions])
        raise LakehouseError(f"the log of {self.table} is being removed", hint="check that the table exists")

    def version(self) -> int | None:
        """The newest version, from the names of the log's files; None if there is no table.

        Raises:
            LakehouseError: the table cannot be read.
        """
        with self._reading("the log of"), suppress(FileNotFoundError):
            return next(iter(listed_versions(self.log, 1)), None)
        return None

    def newest_in(self, version: int, column: str) -> Any:
        """The highest value of a column in the files that a commit has added, by the files' statistics.

        A timestamp is text (ISO 8601), exact to the millisecond. None if the commit has added no rows, or its file has
        expired.

        Raises:
            UnsupportedTable: the files have no statistics of the column.
            LakehouseError: the table cannot be read.
        """
        with self._reading("the log of"):
            try:
                text = commit_file(self.log, version).read_text("utf-8")
            except FileNotFoundError:
                return None
        return highest_added(self.table, text, column)

    def file_statistics(self) -> "pa.Table":
        """One row for each data file of the newest version: `path`, `size_bytes`, `num_records`, `partition.<column>`,
        and of columns with statistics `min.<column>`, `max.<column>` and `null_count.<column>`.

        Raises:
            LakehouseError: the table cannot be read.
        """
        import pyarrow as pa  # noqa: PLC0415

        with translated(self.table, "listing the files of"), self._kept_open() as opened:
            return pa.table(opened.get_add_actions(flatten=True))

    def transaction_version(self, app: str) -> int | None:
        """The newest transaction version of an application, which outlasts its commits; None without one.

        Raises:
            UnsupportedTable: delta-rs cannot open the table.
            LakehouseError: the table cannot be read.
        """
        with self._reading("the transactions of"):
            opened = self._open()
            return None if opened is None else opened.transaction_version(app)

    def is_plain(self, *, variants: bool = False) -> bool:
        """Whether delta-rs reads and writes its rows: without features that change how rows are stored; or no table.

        The table itself decides, so every process uses the same implementation.

        Args:
            variants: the table may have VARIANT columns, which delta-rs writes, but does not read.

        Raises:
            LakehouseError: the table cannot be read.
        """
        if (self.folder, variants) in _PLAIN:
            return True
        try:
            with self._reading("the protocol of"):
                opened = self._open()
        except UnsupportedTable:
            return False
        if opened is None:
            return True
        plain = is_plain(opened, variants=variants)
        if plain:
            _PLAIN.add((self.folder, variants))
        return plain

    def _is_known(self) -> bool:
        """Whether delta-rs can open the table; False if there is none.

        Raises:
            UnsupportedTable: it has a feature that delta-rs does not support.
        """
        if self.folder not in _KNOWN and self._open() is not None:
            _KNOWN.add(self.folder)
        return self.folder in _KNOWN and self._has_log()

    def _info(self, version: int) -> Mapping[str, Any]:
        info = commit_info(commit_file(self.log, version).read_text("utf-8"))
        if info is None:
            raise UnsupportedTable(
                f"the history of {self.table} lacks information about a commit", hint="use a command that starts Spark"
            )
        return info

    def _reading(self, what: str) -> AbstractContextManager[None]:
        return translated(self.table, f"reading {what}")

    def _open(self) -> DeltaTable | None:
        """The table in its newest version; None if there is none."""
        if not self._has_log():
            return None
        try:
            return DeltaTable(str(self.folder))
        except TableNotFoundError:
            return None

    def _has_log(self) -> bool:
        try:
            self.log.stat()  # delta-rs does not distinguish what is absent from what this account may not read
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    @contextmanager
    def _kept_open(self) -> Iterator[DeltaTable]:
        """The table in its newest version. A thread's next call reads only the commits since then, if no other table
        and no error is between the two.
        """
        kept: _Kept | None = _KEPT.__dict__.pop("table", None)
        opened = kept.updated(self.log) if kept is not None else None
        first = kept.first if kept is not None else 0
        if opened is None:
            opened = self._existing()
            first = opened.version()
        yield opened
        commit = commit_file(self.log, opened.version())
        written = _written(commit)
        if written is not None:
            _KEPT.table = _Kept(opened, first, commit, written)

    def _existing(self) -> DeltaTable:
        opened = self._open()
        if opened is None:
            raise LakehouseError(
                f"{self.table} does not exist", hint="restore it, or start the task's run, which creates it"
            )
        return opened

    def _data(self, opened: DeltaTable) -> "DataFiles":
        import pyarrow as pa  # noqa: PLC0415

        from dmdelta.lakehouse.access.arrow_rows import DataFiles  # noqa: PLC0415

        files = [self.folder / uri.rpartition("/")[2] for uri in opened.file_uris()]
        return DataFiles(files, pa.schema(opened.schema().to_arrow()))
