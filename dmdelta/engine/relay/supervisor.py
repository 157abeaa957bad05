"""The relay of one source as the run sees it: preflight, start, supervision, restart."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from dmdelta.bronze.progress import LandedRange
from dmdelta.config import SourceConfig, TaskSpec
from dmdelta.engine.task.mapping import FIRST_TRY, purging_of, reading_of, relay_task
from dmdelta.errors import DmdeltaError, SourceError, StageFailed
from dmdelta.logging import get_logger
from dmdelta.model.gtid import Flavor
from dmdelta.model.schema import TableSchema
from dmdelta.rules import SourceRules
from dmdelta.source.catalog import read_schemas
from dmdelta.source.catalog_snapshot import CatalogSnapshot, read_catalog_snapshot
from dmdelta.source.connection import open_connection
from dmdelta.source.preflight.finding import Finding, Level
from dmdelta.source.preflight.server_checks import Intent, check_source
from dmdelta.source.preflight.table_checks import check_tables
from dmdelta.source.relay.archive import archive_flavor
from dmdelta.source.relay.process import RelayProcess, WaitingRelay
from dmdelta.source.relay.purge import Known, PurgePolicy
from dmdelta.source.relay.relay_task import RelayTask, StartAt
from dmdelta.source.server import sends_column_names, server_identity

log = get_logger(__name__)
RESTARTS = 5
"""How often a relay that another process ended is restarted in one run."""
READY_SECONDS = 30.0


@dataclass(slots=True)
class Relaying:
    """A source and its relay process. Created by `open_relaying`.

    Attributes:
        until_caught_up: the relay ends at the end that the log has when it starts.
        loads: the source's first start is a full load.
        sends_names: the log contains column names, as far as the settings show.
        purging: how long landed segments are kept.
    """

    task: RelayTask
    flavor: Flavor
    rules: SourceRules
    until_caught_up: bool
    loads: bool
    purging: PurgePolicy
    sends_names: bool = True
    _waiting: WaitingRelay | None = field(default_factory=WaitingRelay)
    """The first process: it loads its code while Spark starts."""
    _process: RelayProcess | None = None
    _deaths: int = field(default=0)

    @property
    def source_id(self) -> str:
        return self.task.source_id

    @property
    def folder(self) -> Path:
        """The folder of the source's segments."""
        return self.task.folder

    def begin_behind(self, landed: LandedRange | None) -> None:
        """Tell the relay what has landed: it does not fetch that again, even if its folder is lost."""
        self.task = replace(self.task, until_caught_up=self.until_caught_up)
        if landed is None:
            return
        end = landed.end
        self.task = replace(
            self.task,
            start=StartAt(end.binlog_file, end.offset, end.epoch),
            known=known_of(landed),
        )

    def begin_ahead(self, landed: LandedRange | None) -> None:
        """Relay from `landed` on without end, while tables are read; then call `catch_up`."""
        self.begin_behind(landed)
        self.task = replace(self.task, until_caught_up=False)

    def catch_up(self) -> None:
        """Let a relay that began ahead end at the current end of the log, if the run ends there.

        Raises:
            DmdeltaError: it does not restart.
        """
        if self.until_caught_up and not self.task.until_caught_up:
            self.stop()
            self.task = replace(self.task, until_caught_up=True)
            self.start()

    def start(self) -> None:
        """Start the process and wait until it holds the folder.

        Raises:
            Fenced: another runner's relay holds it.
            DmdeltaError: it does not start.
        """
        if self._process is not None:
            self._process.stop()  # it has ended; this closes its pipes
        self._process, self._waiting = (self._waiting or WaitingRelay()).begin(self.task), None
        if self._process.wait_ready(READY_SECONDS):
            return
        error = self._process.error()
        if error is None:
            raise StageFailed(f"the relay of {self.source_id} does not start", hint="see its log above; run again")
        self._restart(error)

    def check(self) -> None:
        """Restart a relay that was killed or stopped by another process: it has lost nothing.

        Raises:
            DmdeltaError: it ended for a reason that a restart does not fix.
        """
        error = self._process.error() if self._process is not None else None
        if error is not None:
            self._restart(error)

    def _restart(self, error: DmdeltaError) -> None:
        self._deaths += 1
        if not isinstance(error, StageFailed) or self._deaths > RESTARTS:
            raise error
        log.warning("relay process ended", source=self.source_id, why=error.message, deaths=self._deaths)
        self.start()

    def has_ended(self) -> bool:
        """It has relayed everything requested."""
        return self._process is not None and self._process.caught_up

    @property
    def is_running(self) -> bool:
        """Its process has been started and has not ended."""
        return self._process is not None and self._process.poll()

    def publish(self) -> None:
        """Let it publish the transactions that it has now, instead of within a second."""
        if self._process is not None:
            self._process.publish()

    def stop(self) -> None:
        """Stop it at a transaction boundary."""
        if self._waiting is not None:
            self._waiting.dismiss()
            self._waiting = None
        if self._process is not None:
            self._process.stop()

    def read_catalog(self) -> Sequence[TableSchema]:
        """The current contents of information_schema; empty for an archive."""
        if self.task.endpoint is None:
            return ()
        with open_connection(self.task.endpoint, FIRST_TRY) as connection:
            return read_schemas(connection, self.rules.wanted)

    def read_catalog_snapshot(self, wanted: Callable[[str, str], bool]) -> CatalogSnapshot | None:
        """The current contents of information_schema, and the log position at which it is valid; None for an archive.

        Raises:
            SourceUnavailable, SourceError: the server does not answer.
        """
        return read_catalog_snapshot(self.task.endpoint, wanted) if self.task.endpoint is not None else None


def known_of(landed: LandedRange) -> Known:
    """What has landed, in the form that the relay reads."""
    return Known(landed.end, str(landed.gtid_set))


@contextmanager
def open_relaying(spec: TaskSpec, source: SourceConfig, *, until_caught_up: bool) -> Iterator[Relaying]:
    """Check whether the source can be relayed; its relay is stopped at the end.

    Raises:
        SourceError, SourceUnavailable: it cannot, with the fix of the first failed check.
    """
    task = relay_task(spec, source, until_caught_up=until_caught_up)
    rules, sends_names = SourceRules.from_spec(spec, source), True
    if task.endpoint is None:
        flavor = archive_flavor(Path(task.binlog_dir or ""))
    else:
        with open_connection(task.endpoint, FIRST_TRY) as connection:
            flavor, sends_names = server_identity(connection).flavor, sends_column_names(connection)
            findings = [
                *check_source(connection, Intent(task.endpoint.server_id)),
                *check_tables(connection, rules, reading_of(spec, source)),
            ]
            _raise_failures(source.source_id, [finding for finding in findings if not spec.is_ignored(finding.name)])
    loads, purging = spec.loads(source), purging_of(source.relay.purge)
    relaying = Relaying(
        task=task,
        flavor=flavor,
        rules=rules,
        until_caught_up=until_caught_up,
        loads=loads,
        purging=purging,
        sends_names=sends_names,
    )
    try:
        yield relaying
    finally:
        relaying.stop()


@contextmanager
def stopped_on_failure(relayings: Sequence[Relaying]) -> Iterator[None]:
    """Stop the relays if the block fails.

    A relay holds the lock of its folder, which the next attempt of the run needs. A paused task relays nothing.
    """
    with ExitStack() as failed:
        for relaying in relayings:
            failed.callback(relaying.stop)
        yield
        failed.pop_all()


def _raise_failures(source_id: str, findings: Sequence[Finding]) -> None:
    for finding in findings:
        if finding.level is Level.FAIL:
            raise SourceError(f"{source_id}: {finding.message}", hint=finding.fix, check=finding.name)
        if finding.level is Level.WARN:
            log.warning("preflight", source=source_id, check=finding.name, finding=finding.message, fix=finding.fix)
