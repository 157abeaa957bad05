"""Tables in a folder of this machine, accessed with delta-rs.

A commit is a file that is created only if it does not exist, so several threads and processes may append at the same
time. Spark's log store for local files does not have this property between writers: after a dm_meta table has been
created, everything that writes it under a local root does so here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, TypeVar

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, SchemaMismatchError

from dmdelta.errors import LakehouseError
from dmdelta.lakehouse.access.boundary import fenced
from dmdelta.lakehouse.access.commit_log import Commit, newest_own_commit
from dmdelta.lakehouse.access.commit_tag import CommitTag, KeptTags, OwnCommit
from dmdelta.lakehouse.access.commit_times import timed_commits
from dmdelta.lakehouse.access.delta_rs.errors import translated
from dmdelta.lakehouse.access.delta_rs.local_reads import LocalReads
from dmdelta.lakehouse.access.interface import PartitionBound, RowCondition
from dmdelta.lakehouse.access.log_cleanup import LOG_RETENTION

if TYPE_CHECKING:
    import pyarrow as pa

Done = TypeVar("Done")
TRIES = 5
CLEANUP_COMMITS = 50
"""After so many appends the log's expired files are removed; delta-rs would search all of them after each one."""


@dataclass(frozen=True, slots=True)
class LocalTable(LocalReads):
    """The table in a folder, for reading and writing. Implements `MetadataAccess`; thread-safe."""

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
            # Full: a checkpoint of the log drops the names of old files, also of those that no VACUUM has removed yet.
            self._attempts(lambda opened: opened.vacuum(dry_run=False, full=True))

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
            return self._attempts(attempt, keeps_open=keeps_positions)

    def _attempts(self, attempt: Callable[[DeltaTable], Done], *, keeps_open: bool = False) -> Done:
        """Write to the table in its newest version, again if another writer's commit conflicts."""
        for _ in range(TRIES - 1):
            with suppress(CommitFailedError, SchemaMismatchError), self._writing(keeps_open=keeps_open) as opened:
                return attempt(opened)
        with self._writing(keeps_open=keeps_open) as opened:
            return attempt(opened)

    @contextmanager
    def _writing(self, *, keeps_open: bool) -> Iterator[DeltaTable]:
        opening = self._kept_open() if keeps_open else nullcontext(self._existing())
        with self._last_checkpoint(), opening as opened:
            yield opened

    @contextmanager
    def _last_checkpoint(self) -> Iterator[None]:
        """Remove Hadoop's checksum of a file that both writers replace, which Spark would otherwise not accept."""
        try:
            yield
        finally:
            (self.log / "._last_checkpoint.crc").unlink(missing_ok=True)

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
