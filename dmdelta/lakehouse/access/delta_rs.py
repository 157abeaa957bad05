"""Tables in a folder of this machine, accessed with delta-rs.

A commit is a file that is created only if it does not exist, so several threads and processes may append at the same
time. Spark's log store for local files does not have this property between writers: after a dm_meta table has been
created, everything that writes it under a local root does so here.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, SchemaMismatchError, TableNotFoundError

from dmdelta.errors import LakehouseError, UnsupportedTable
from dmdelta.lakehouse.access.boundary import fenced
from dmdelta.lakehouse.access.commit_log import Commit, newest_own_commit
from dmdelta.lakehouse.access.commit_tag import CommitTag, KeptTags, OwnCommit
from dmdelta.lakehouse.access.commit_times import listed_versions, timed_commits
from dmdelta.lakehouse.access.delta_rs_errors import translated
from dmdelta.lakehouse.access.interface import Condition, MetadataRow, NewestBy, PartitionBound, RowCondition
from dmdelta.lakehouse.access.log_cleanup import LOG_RETENTION

if TYPE_CHECKING:
    import pyarrow as pa

    from dmdelta.lakehouse.access.arrow_rows import DataFiles

Done = TypeVar("Done")
LOOKS, LOOK_SECONDS = 12, 0.01
"""How often a history is read again because another process has committed meanwhile, and the growing wait between."""
TRIES = 5
CLEANUP_COMMITS = 50
"""After so many appends the log's expired files are removed; delta-rs would search all of them after each one."""
_FEATURES = 7
"""The writer version of tables that list their features."""
_PLAIN_FEATURES = frozenset({"appendOnly", "invariants"})
_VARIANT = frozenset({"variantType"})
_PLAIN: set[tuple[Path, bool]] = set()
"""Tables that have been found plain, and with which question: they stay so, unless their properties are changed by
hand."""


@dataclass(frozen=True, slots=True)
class LocalTable:
    """The table in a folder. Implements `MetadataAccess`; thread-safe.

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
        with translated(self.table, "reading the history of"):
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
        with translated(self.table, "reading the log of"), suppress(FileNotFoundError):
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
        with translated(self.table, "reading the log of"):
            try:
                text = (self.log / f"{version:020d}.json").read_text("utf-8")
            except FileNotFoundError:
                return None
        return highest_added(self.table, text, column)

    def newest(self, by: NewestBy, conditions: Sequence[Condition] = ()) -> list[MetadataRow]:
        """The newest row of each key among those that fulfil all conditions. Reads the table in parts.

        Raises:
            LakehouseError: the table cannot be read.
        """
        from dmdelta.lakehouse.access.arrow_rows import newest_rows  # noqa: PLC0415 - PyArrow is not needed for commits

        with translated(self.table, "reading"):
            opened = self._open()
            return [] if opened is None else newest_rows(self._data(opened), by, conditions)

    def rows(self, conditions: Sequence[Condition] = (), columns: Sequence[str] | None = None) -> list[MetadataRow]:
        """The rows that fulfil all conditions, in no particular order; only these columns, or all.

        Raises:
            LakehouseError: the table cannot be read.
        """
        from dmdelta.lakehouse.access.arrow_rows import matching_rows  # noqa: PLC0415

        with translated(self.table, "reading"):
            opened = self._open()
            return [] if opened is None else matching_rows(self._data(opened), conditions, columns)

    def file_statistics(self) -> "pa.Table":
        """One row for each data file of the newest version: `path`, `size_bytes`, `num_records`, `partition.<column>`,
        and of columns with statistics `min.<column>`, `max.<column>` and `null_count.<column>`.

        Raises:
            LakehouseError: the table cannot be read.
        """
        import pyarrow as pa  # noqa: PLC0415

        with translated(self.table, "listing the files of"):
            return pa.table(self._existing().get_add_actions(flatten=True))

    def append(self, rows: Sequence[Mapping[str, Any]], tag: CommitTag | None) -> OwnCommit | None:
        """Append rows in one commit; columns that a row does not contain are NULL.

        The check of the tag's transaction and the commit are atomic: the commit names the version of the table at which
        the transaction was looked up, and fails if another writer has committed the same application since then.

        Raises:
            Fenced: another run committed under the tag's app at or after its version.
            CommitConflict: other writers committed first in every attempt; nothing was written.
            LakehouseError: there is no such table, or it cannot be written.
        """
        return self._append(lambda opened: self._arrow(opened, rows), tag)

    def append_arrow(self, rows: "pa.Table", tag: CommitTag) -> OwnCommit | None:
        """As `append`, of rows that have the table's columns; a VARIANT is a struct of its value and its metadata.

        The rows of one commit become one file for each partition value, in their order. If the table has a log
        retention of its own, only maintenance removes old commits: it repeats positions before.
        """
        whole = rows.combine_chunks()  # several threads write several chunks, in any order
        return self._append(lambda _: whole, tag, keeps_positions=True)

    def repeat(self, plan: Callable[[Sequence[Commit]], KeptTags | None]) -> bool:
        """Commit without rows the tags that `plan` takes from the whole history; True if there are any.

        If another writer commits an application meanwhile whose tag is repeated, the history is read again.

        Raises:
            UnsupportedTable: the history cannot be read.
            CommitConflict: other writers committed first in every attempt; nothing was written.
            LakehouseError: the table cannot be written.
        """

        def attempt(opened: DeltaTable) -> bool:
            kept = plan(self.commits(None))
            if kept is None:
                return False
            properties = CommitProperties(
                custom_metadata={"userMetadata": kept.to_json()},
                app_transactions=[Transaction(tag.app, tag.version) for tag in kept.newest],
            )
            partitions = opened.metadata().partition_columns
            opened.create_write_transaction([], "append", opened.schema(), partitions, commit_properties=properties)
            return True

        with translated(self.table, "appending to"):
            return self._attempts(attempt)

    def transaction_version(self, app: str) -> int | None:
        """The newest transaction version of an application, which outlasts its commits; None without one.

        Raises:
            UnsupportedTable: delta-rs cannot open the table.
            LakehouseError: the table cannot be read.
        """
        with translated(self.table, "reading the transactions of"):
            opened = self._open()
            return None if opened is None else opened.transaction_version(app)

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Set properties.

        Raises:
            CommitConflict: other writers committed first in every attempt.
            LakehouseError: the table cannot be changed.
        """
        with translated(self.table, "changing"):
            self._attempts(
                lambda opened: opened.alter.set_table_properties(dict(properties), raise_if_not_exists=False)
            )

    def delete(self, condition: RowCondition) -> None:
        """Delete the rows that fulfil a condition.

        Raises:
            CommitConflict: other writers committed first in every attempt; nothing was deleted.
            LakehouseError: the table cannot be written.
        """
        with translated(self.table, "deleting from"):
            self._attempts(lambda opened: opened.delete(condition(_literal)))

    def compact(self, since: PartitionBound | None = None, target_bytes: int | None = None) -> tuple[int, int]:
        """Rewrite small files into large ones; the rows keep their order. Returns the numbers of removed and added
        files.

        Args:
            since: the partitions to compact; None: all.
            target_bytes: the size of a large file; None: Delta's default.

        Raises:
            CommitConflict: another writer deleted rows meanwhile.
            LakehouseError: the table cannot be written.
        """
        filters = None if since is None else [(since.column, ">=", str(since.first))]
        with translated(self.table, "compacting"):
            # A second task would only take another core from the run.
            metrics = self._attempts(lambda opened: opened.optimize.compact(filters, target_bytes, 1))
        return metrics["numFilesRemoved"], metrics["numFilesAdded"]

    def vacuum(self) -> None:
        """Remove the files that the table no longer needs and that are older than its retention.

        Raises:
            LakehouseError: the table cannot be written.
        """
        with translated(self.table, "vacuuming"):
            self._attempts(lambda opened: opened.vacuum(dry_run=False))

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
            with translated(self.table, "reading the protocol of"):
                opened = self._open()
        except UnsupportedTable:
            return False
        if opened is None:
            return True
        plain = is_plain(opened, variants=variants)
        if plain:
            _PLAIN.add((self.folder, variants))
        return plain

    def properties(self) -> Mapping[str, str] | None:
        """The table's properties; None if it does not exist.

        Raises:
            LakehouseError: the table cannot be read.
        """
        with translated(self.table, "reading the properties of"):
            opened = self._open()
            return None if opened is None else opened.metadata().configuration

    def create(self, schema_json: str, properties: Mapping[str, str]) -> bool:
        """Create it in an empty or absent folder; False if anything is in the folder.

        Args:
            schema_json: its columns, in Delta's format, which is that of Spark's StructType.

        Raises:
            LakehouseError: it cannot be created.
        """
        with translated(self.table, "creating"):
            if self.folder.exists() and any(self.folder.iterdir()):
                return False
            schema = Schema.from_json(schema_json)
            try:
                # Properties of dmdelta's own are unknown to delta-rs.
                DeltaTable.create(str(self.folder), schema, configuration=properties, raise_if_key_not_exists=False)
            except Exception:
                if self._open() is None:
                    raise
                return False  # another process has created it meanwhile
            return True

    def add_columns(self, schema_json: str) -> None:
        """Add those columns that the table lacks; NULL in existing rows.

        Args:
            schema_json: all columns, in Delta's format, which is that of Spark's StructType.

        Raises:
            LakehouseError: the table cannot be changed.
        """

        def attempt(opened: DeltaTable) -> None:
            existing = {field.name for field in opened.schema().fields}
            missing = [field for field in Schema.from_json(schema_json).fields if field.name not in existing]
            if missing:
                opened.alter.add_columns(missing)

        with translated(self.table, "adding columns to"):
            self._attempts(attempt)

    def _append(
        self, rows: Callable[[DeltaTable], "pa.Table"], tag: CommitTag | None, *, keeps_positions: bool = False
    ) -> OwnCommit | None:
        def attempt(opened: DeltaTable) -> OwnCommit | None:
            if tag is not None and _committed(opened, tag) >= tag.version:
                return self._skipped(opened, tag)
            cleans = not keeps_positions or LOG_RETENTION not in opened.metadata().configuration
            due = None if cleans and (opened.version() + 1) % CLEANUP_COMMITS == 0 else False
            write_deltalake(
                opened,
                rows(opened),
                mode="append",
                commit_properties=_properties(tag),
                post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=due),
            )
            return None if tag is None else self._made(opened.version(), tag)

        with translated(self.table, "appending to"):
            return self._attempts(attempt)

    def _attempts(self, attempt: Callable[[DeltaTable], Done]) -> Done:
        """Write to the table in its newest version, again if another writer's commit conflicts."""
        for _ in range(TRIES - 1):
            with suppress(CommitFailedError, SchemaMismatchError), self._last_checkpoint():
                return attempt(self._existing())
        with self._last_checkpoint():
            return attempt(self._existing())

    @contextmanager
    def _last_checkpoint(self) -> Iterator[None]:
        """Remove Hadoop's checksum of a file that both writers replace, which Spark would otherwise not accept."""
        try:
            yield
        finally:
            (self.log / "._last_checkpoint.crc").unlink(missing_ok=True)

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

    def _arrow(self, opened: DeltaTable, rows: Sequence[Mapping[str, Any]]) -> "pa.Table":
        import pyarrow as pa  # noqa: PLC0415

        schema = pa.schema(opened.schema().to_arrow())
        unknown = {name for row in rows for name in row} - set(schema.names)
        if unknown:
            raise LakehouseError(
                f"{self.table} lacks the columns {', '.join(sorted(unknown))}",
                hint="start the task's run, which adds them",
            )
        return pa.Table.from_pylist([dict(row) for row in rows], schema)

    def _made(self, version: int, tag: CommitTag) -> OwnCommit:
        """The commit that was just made. The history, which takes the longer to read the longer it is, lists it with
        the same time, or a few milliseconds later if other commits have that time.
        """
        made = timed_commits(self.log, [version], [{}])
        return OwnCommit(version, tag, made[0].at if made else datetime.now(timezone.utc))

    def _skipped(self, opened: DeltaTable, tag: CommitTag) -> OwnCommit:
        """The commit with this tag that the table has already.

        Raises:
            Fenced: it is another run's, or this run has committed a later version.
        """
        found = newest_own_commit(self.commits, tag.app)
        if found is None and _committed(opened, tag) == tag.version:
            # The log retention has removed the commit; Delta keeps an application's newest version for longer.
            return OwnCommit(opened.version(), tag, datetime.now(timezone.utc))
        if found is None or (found.tag.version, found.tag.run) != (tag.version, tag.run):
            raise fenced(self.table)
        return found


def is_plain(opened: DeltaTable, *, variants: bool = False) -> bool:
    """Whether a table has no features that change how rows are stored; with `variants`, except VARIANT columns."""
    protocol = opened.protocol()
    features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    lists_features = protocol.min_writer_version == _FEATURES
    allowed = _PLAIN_FEATURES | _VARIANT if variants else _PLAIN_FEATURES
    return features <= allowed if lists_features else protocol.min_writer_version <= 2


def highest_added(table: str, commit: str, column: str) -> Any:
    """The highest value of a column in the files that a commit adds, by their statistics; None if it adds no rows.

    Args:
        commit: the content of its file.

    Raises:
        UnsupportedTable: the files have no statistics of the column.
    """
    added = [action["add"] for action in map(json.loads, commit.splitlines()) if "add" in action]
    statistics = [json.loads(file.get("stats") or "{}") for file in added]
    highest = [one.get("maxValues", {}).get(column) for one in statistics if one.get("numRecords") != 0]
    if any(value is None for value in highest):
        raise UnsupportedTable(
            f"files of {table} have no statistics of {column}", hint="use a command that starts Spark"
        )
    return max(highest, default=None)


def _committed(opened: DeltaTable, tag: CommitTag) -> int:
    """The newest version of the tag's application in the table; -1 if there is none."""
    version: int | None = opened.transaction_version(tag.app)
    return -1 if version is None else version


def _literal(text: str) -> str:
    """`text` as a string literal of delta-rs' SQL, which knows no escapes but the doubled quote."""
    return "'" + text.replace("'", "''") + "'"


def _properties(tag: CommitTag | None) -> CommitProperties | None:
    if tag is None:
        return None
    return CommitProperties(
        custom_metadata={"userMetadata": tag.to_json()}, app_transactions=[Transaction(tag.app, tag.version)]
    )
