"""What delta-rs reads from a folder of this machine, without Spark: histories, rows, statistics and properties."""

import time
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from dmdelta.errors import LakehouseError, UnsupportedTable
from dmdelta.lakehouse.access.commit_log import Commit
from dmdelta.lakehouse.access.commit_times import listed_versions, timed_commits
from dmdelta.lakehouse.access.delta_rs.errors import translated
from dmdelta.lakehouse.access.delta_rs.reads import LOOKS, DeltaRsReads, highest_added, is_plain

if TYPE_CHECKING:
    import pyarrow as pa

    from dmdelta.lakehouse.access.arrow_rows import DataFiles

LOOK_SECONDS = 0.01
"""How much the wait before a history is read again grows."""
_PLAIN: set[tuple[Path, bool]] = set()
"""Tables that have been found plain, and with which question: they stay so, unless their properties are changed by
hand."""


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
        with self._reading("the history of"):
            for number in range(LOOKS):
                time.sleep(LOOK_SECONDS * number)  # at once, then later and later: another process is committing
                opened = self._open()
                if opened is None:
                    return []
                # delta-rs numbers the commits downwards from the version at which the table was opened. That is wrong
                # if another commit was made since then, if one has no information, and if one is missing.
                versions = listed_versions(self.log, limit)
                try:
                    infos = opened.history(limit)
                except Exception:
                    if listed_versions(self.log, limit) == versions:
                        raise
                    continue  # a file was removed that had been listed
                if len(infos) == len(versions) and listed_versions(self.log, limit) == versions:
                    return timed_commits(self.log, versions, infos)
        raise UnsupportedTable(
            f"the history of {self.table} lacks information about a commit", hint="use a command that starts Spark"
        )

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
                text = (self.log / f"{version:020d}.json").read_text("utf-8")
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

        with translated(self.table, "listing the files of"):
            return pa.table(self._existing().get_add_actions(flatten=True))

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

    def _reading(self, what: str) -> AbstractContextManager[None]:
        return translated(self.table, f"reading {what}")

    def _open(self) -> DeltaTable | None:
        """The table in its newest version; None if there is none."""
        try:
            self.log.stat()  # delta-rs does not distinguish what is absent from what this account may not read
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            return DeltaTable(str(self.folder))
        except TableNotFoundError:
            return None

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
