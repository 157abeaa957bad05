"""Tables in object stores, read with delta-rs. Every failure is an UnsupportedTable: Spark may be able to read them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from dmdelta.errors import LakehouseError, UnsupportedTable
from dmdelta.lakehouse.access.commit_log import Commit
from dmdelta.lakehouse.access.delta_rs.errors import translated
from dmdelta.lakehouse.access.delta_rs.reads import LOOKS, DeltaRsReads, highest_added, is_plain

if TYPE_CHECKING:
    import pyarrow.fs

    from dmdelta.lakehouse.access.arrow_rows import DataFiles


@dataclass(frozen=True, slots=True)
class RemoteTable(DeltaRsReads):
    """The table at a URI.

    Attributes:
        table: its SQL identifier, for messages.
        options: of delta-rs' object store; credentials come from the environment.
    """

    table: str
    uri: str
    options: Mapping[str, str]

    def commits(self, limit: int | None) -> list[Commit]:
        """The newest `limit` commits, newest first; their times are those of their writers' clocks.

        Raises:
            UnsupportedTable: delta-rs cannot read the table, or a commit says nothing about itself.
        """
        with self._reading("the history of"):
            for _ in range(LOOKS):
                opened = self._open()
                if opened is None:
                    return []
                infos, newest = opened.history(limit), opened.version()
                # delta-rs reads commits that were added since the table was opened, and leaves out those without
                # information: the numbers are right if none follows the first and, at the end, none precedes the last.
                if self._text(opened, newest + 1) is None:
                    oldest = newest - len(infos) + 1
                    if len(infos) != limit and oldest > 0 and self._text(opened, oldest - 1) is not None:
                        break
                    return [Commit(newest - n, info.get("userMetadata"), _at(info)) for n, info in enumerate(infos)]
        raise UnsupportedTable(
            f"the history of {self.table} lacks information about a commit", hint="use a command that starts Spark"
        )

    def newest_in(self, version: int, column: str) -> Any:
        """The highest value of a column in the files that a commit has added, as `LocalTable.newest_in`.

        Raises:
            UnsupportedTable: delta-rs cannot read the table, or the files have no statistics of the column.
        """
        with self._reading("the log of"):
            opened = self._open()
            text = None if opened is None else self._text(opened, version)
            return None if text is None else highest_added(self.table, text, column)

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        try:
            with translated(self.table, f"reading {what}"):
                yield
        except LakehouseError as error:
            raise UnsupportedTable(error.message, hint="use a command that starts Spark") from error

    def _open(self) -> DeltaTable | None:
        """The table in its newest version; None if there is none."""
        try:
            return DeltaTable(self.uri, storage_options=dict(self.options))
        except TableNotFoundError:
            return None

    def _data(self, opened: DeltaTable) -> "DataFiles":
        import pyarrow as pa  # noqa: PLC0415

        from dmdelta.lakehouse.access.arrow_rows import DataFiles  # noqa: PLC0415

        if not is_plain(opened):
            raise UnsupportedTable(f"{self.table} has a feature that delta-rs does not support")
        files, store = opened.file_uris(), self._store(opened)
        names = (uri.rpartition("/")[2] for uri in files)
        return DataFiles((store.open_input_file(name) for name in names), pa.schema(opened.schema().to_arrow()))

    def _text(self, opened: DeltaTable, version: int) -> str | None:
        """The content of a commit's file; None if it has expired."""
        try:
            with self._store(opened).open_input_file(f"_delta_log/{version:020d}.json") as file:
                return str(file.read(), "utf-8")
        except FileNotFoundError:
            return None

    def _store(self, opened: DeltaTable) -> "pyarrow.fs.PyFileSystem":
        import pyarrow.fs as pa_fs  # noqa: PLC0415
        from deltalake.fs import DeltaStorageHandler  # noqa: PLC0415

        return pa_fs.PyFileSystem(DeltaStorageHandler.from_table(opened._table))  # noqa: SLF001 - as delta-rs does


def _at(info: Mapping[str, Any]) -> datetime:
    millis = info.get("inCommitTimestamp", info.get("timestamp", 0))
    return datetime.fromtimestamp(millis / 1000, timezone.utc)
