"""`dmdelta validate`: compares every table of the task, or reports why it cannot be compared."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from dmdelta.config import SourceConfig, TaskSpec
from dmdelta.engine.snapshot.store import ChunkStore
from dmdelta.engine.task.mapping import endpoint_of, sinks_passing_rows, target_server
from dmdelta.engine.task.source import TaskSource, source_of_task
from dmdelta.engine.task.task import Stage, Task, ignored, named_source, open_task
from dmdelta.engine.validation.compare import TableValidation
from dmdelta.engine.validation.one_sided import OneSided
from dmdelta.engine.validation.results import Against, Outcome, Validated, ValidateRequest, shown
from dmdelta.engine.validation.sink_compare import SinkValidation
from dmdelta.engine.validation.sink_tables import plan_sink_table
from dmdelta.errors import ConfigError, DmdeltaError, NotLanded, Retryable
from dmdelta.model.schema import TableName
from dmdelta.quality.suite import Suites, load_suites
from dmdelta.rules.comparable_rows import plan_comparable_rows
from dmdelta.silver.table.table import Condition, silver_condition
from dmdelta.source.catalog import table_names
from dmdelta.source.connection import open_connection
from dmdelta.source.endpoint import Endpoint

Report = Callable[[Validated], object]


def validate(spec: TaskSpec, request: ValidateRequest, report: Report, stage: Stage = ignored) -> list[Validated]:
    """Compare every matching table with its source, one after the other, and repair silver if requested.

    The result lists the tables of the source that the rules include, those that have been written to silver, and those
    that bronze has; not the ones that neither side has any more.

    Args:
        report: called with the result of each table.
        stage: called when the tables are looked up, and for each table.

    Raises:
        ConfigError: there is no such table, the source is an archive, or the spec has no sink to compare with.
        NotLanded: bronze does not reach the source's position.
        SourceUnavailable, SourceError: the source cannot be reached.
        LakehouseError: dm_meta or bronze cannot be read.
    """
    configs = [named_source(spec, request.source)] if request.source is not None else list(spec.sources)
    if all(endpoint_of(config) is None for config in configs):
        names = ", ".join(config.source_id for config in configs)
        raise ConfigError(
            f"{names} is an archive", hint="use a source with a server: an archive has no tables to compare with"
        )
    if request.against is Against.SINK and spec.sink is None:
        raise ConfigError("the spec has no sink", hint="add the section `sink` to the spec, or omit --against sink")
    task = open_task(spec, writing=False, beside_run=True)
    stage("looking up tables")
    results = [line for config in configs for line in _of_source(task, config, request, report, stage)]
    if not results:
        raise ConfigError(
            f"the task has no table {request.table}", hint="use the table's name at the source: schema.table"
        )
    return results


def _of_source(
    task: Task, config: SourceConfig, request: ValidateRequest, report: Report, stage: Stage
) -> list[Validated]:
    source, endpoint = source_of_task(task, config), endpoint_of(config)
    tables = SourceTables(source, endpoint, request)
    results: list[Validated] = []
    names = tables.names()
    for number, name in enumerate(names, 1):
        stage(f"comparing {shown(name)} ({number} of {len(names)})")
        line = tables.validate(name)
        if line is not None:
            results.append(line)
            report(line)
    return results


@dataclass(slots=True)
class SourceTables:
    """The tables of one source, and how each is compared.

    Attributes:
        endpoint: None for an archive.
    """

    source: TaskSource
    endpoint: Endpoint | None
    request: ValidateRequest
    _in_source: set[TableName] = field(default_factory=set)
    _pending: frozenset[TableName] = frozenset()
    _suites: Suites | None = None

    def names(self) -> list[TableName]:
        """The tables that match the request, sorted by name.

        Raises:
            DmdeltaError: the source or the lakehouse cannot be read.
        """
        source, task = self.source, self.source.task
        if self.endpoint is not None:
            with closing(open_connection(self.endpoint)) as connection:
                self._in_source = table_names(connection, source.context.rules.wanted)
        self._pending = ChunkStore(
            task.spark, task.lakehouse, task.spec.name, source.context.source_id, task.run
        ).pending_tables()
        every = {*self._in_source, *source.mentioned_tables(), *source.applied_tables()}
        return sorted(name for name in every if fnmatchcase(shown(name), self.request.table))

    def validate(self, name: TableName) -> Validated | None:
        """Compare a table; None if neither side has it.

        Raises:
            NotLanded: bronze does not reach the source's position.
            DmdeltaError: an error that affects all tables, such as an unreachable server.
        """
        try:
            return self._validate(name)
        except NotLanded:
            raise
        except DmdeltaError as error:
            if isinstance(error, Retryable):
                raise
            hint = f" ({error.hint})" if error.hint else ""
            return self._line(name, Outcome.NOT_COMPARED, error.message + hint)

    def _validate(self, name: TableName) -> Validated | None:
        source = self.source
        condition = silver_condition(source.task.spark, source.context.table(name))
        silver = self.request.against is Against.SILVER
        if name not in self._in_source and condition is Condition.ABSENT and silver:
            return None
        if not source.context.rules.wanted(*name):
            return self._line(name, Outcome.EXCLUDED, "the spec's rules exclude it")
        if self.endpoint is None:
            return self._line(name, Outcome.EXCLUDED, f"{source.config.source_id} is an archive, without a server")
        if not silver:
            return self._against_sink(name, self.endpoint)
        if name not in self._in_source:
            return self._one_sided(name, self.endpoint).silver_alone()
        compared = plan_comparable_rows(source.context.rules, name)
        if isinstance(compared, str):
            return self._line(name, Outcome.EXCLUDED, compared)
        if name in self._pending:
            return self._line(name, Outcome.NOT_COMPARED, "its snapshot is not complete yet")
        if condition is not Condition.PRESENT:
            alone = self._one_sided(name, self.endpoint).source_alone(compared)
            if alone is not None:
                return alone
        return TableValidation(source, self.endpoint, name, compared, self.request).run()

    def _against_sink(self, name: TableName, endpoint: Endpoint) -> Validated | None:
        source, sink = self.source, self.source.task.spec.sink
        assert sink is not None
        others = {other for other in {*self._in_source, *source.known_tables()} if other != name}
        planned = plan_sink_table(source.context.rules, name, others, len(source.task.spec.sources))
        if self._is_kept_out(name):
            planned = "quality.sink: passing keeps the rows that its suite quarantines out of the target"
        if isinstance(planned, str):
            return self._line(name, Outcome.EXCLUDED, planned)
        return SinkValidation(
            source, endpoint, target_server(sink), planned, name in self._in_source, self.request
        ).run()

    def _is_kept_out(self, name: TableName) -> bool:
        """Whether rows of a table may be in quarantine, and therefore not in the target."""
        spec = self.source.task.spec
        if spec.quality is None or not sinks_passing_rows(spec):
            return False
        if self._suites is None:
            self._suites = load_suites(Path(spec.quality.schemas))
        expectations = self._suites.of(self.source.context.rules.route(*name).name).row_wise
        return any(one.config.on_failure == "quarantine" for one in expectations)

    def _one_sided(self, name: TableName, endpoint: Endpoint) -> OneSided:
        return OneSided(self.source, endpoint, name, self.request)

    def _line(self, name: TableName, status: Outcome, reason: str) -> Validated:
        return Validated(
            source=self.source.config.source_id,
            table=shown(name),
            against=self.request.against,
            status=status,
            reason=reason,
        )
