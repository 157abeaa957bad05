"""Checks whether the task can run. Every source and the lakehouse are queried, nothing is written."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dmdelta.config import SourceConfig, TaskSpec
from dmdelta.engine.relay.admin import landed_end
from dmdelta.engine.task.mapping import FIRST_TRY, reading_of, relay_task
from dmdelta.engine.task.risks import SelectedTables, plan_risks, read_selected
from dmdelta.engine.task.target_checks import check_target
from dmdelta.engine.task.task import open_metadata, open_suites, open_task
from dmdelta.errors import DmdeltaError
from dmdelta.lakehouse.tables import table_state
from dmdelta.model.schema import TableName
from dmdelta.rules import SourceRules
from dmdelta.source.connection import open_connection
from dmdelta.source.preflight.finding import Finding, Level
from dmdelta.source.preflight.server_checks import check_relay
from dmdelta.source.preflight.shard_checks import shard_findings
from dmdelta.source.preflight.table_checks import check_tables
from dmdelta.source.relay.archive import archive_files
from dmdelta.source.relay.purge import Known


@dataclass(frozen=True, slots=True)
class TaskFinding:
    """The result of one check of a source, or of the lakehouse; `fix` resolves it."""

    source: str
    check: str
    level: Level
    message: str
    fix: str

    @property
    def stops(self) -> bool:
        """The task cannot run."""
        return self.level is Level.FAIL


def check_task(spec: TaskSpec) -> list[TaskFinding]:
    """All findings except those that the spec ignores, sources first.

    A source that does not answer is a finding, not an error.
    """
    sources: list[SelectedTables] = []
    findings = [
        TaskFinding(source.source_id, finding.name, finding.level, finding.message, finding.fix)
        for source in spec.sources
        for finding in _source_findings(spec, source, sources)
    ]
    selected = SelectedTables.of_all(sources)
    findings += [
        TaskFinding("shards", finding.name, finding.level, finding.message, finding.fix)
        for finding in shard_findings(selected.shards, spec.shard_mode)
    ]
    findings += _target_findings(spec, selected)
    counted = [finding for finding in findings if not spec.is_ignored(finding.check)]
    return [*counted, *_unknown_checks(spec, {finding.check for finding in findings}), _lakehouse_finding(spec)]


def _target_findings(spec: TaskSpec, selected: SelectedTables) -> list[TaskFinding]:
    """The sink's target: a server of the spec's kind, where the account may do what the sink does; and the risks."""
    if spec.sink is None:
        return _risk_findings(spec, selected, {})
    target = check_target(spec.sink, selected)
    found = [TaskFinding("sink", one.name, one.level, one.message, one.fix) for one in target.findings]
    return [*found, *_risk_findings(spec, selected, target.keys)]


def _risk_findings(spec: TaskSpec, selected: SelectedTables, sink_keys: Mapping[TableName, bool]) -> list[TaskFinding]:
    risks = plan_risks(spec, selected, sink_keys)
    return [
        TaskFinding(risk.concerns, risk.finding.name, risk.finding.level, risk.finding.message, risk.finding.fix)
        for risk in risks
    ]


def _unknown_checks(spec: TaskSpec, names: Collection[str]) -> list[TaskFinding]:
    """A name that ignores nothing is probably misspelled."""
    wrong = [name for name in spec.ignore_checking_items if name not in names and name != "all"]
    message, fix = "ignore-checking-items: no such check", "use the names that this table shows"
    return [TaskFinding("spec", name, Level.WARN, message, fix) for name in wrong]


def _source_findings(spec: TaskSpec, source: SourceConfig, sources: list[SelectedTables]) -> Iterator[Finding]:
    """All findings of a source; its tables are added to `sources`."""
    task = relay_task(spec, source, until_caught_up=False)
    try:
        if task.endpoint is None:
            files = archive_files(Path(task.binlog_dir or ""))
            yield Finding("archive", Level.PASS, f"{len(files)} binlog files, {sum(files.values()):,} bytes")
            return
        with open_connection(task.endpoint, FIRST_TRY) as connection:
            yield from check_relay(connection, task, partial(_landed, spec, source))
            rules = SourceRules.from_spec(spec, source)
            yield from check_tables(connection, rules, reading_of(spec, source))
            sources.append(read_selected(connection, rules))
    except DmdeltaError as error:
        yield Finding("connection", Level.FAIL, error.message, error.hint or "")


def _landed(spec: TaskSpec, source: SourceConfig) -> Known | None:
    """The end of bronze; None also if the lakehouse cannot be read, which is a finding of its own."""
    try:
        return landed_end(open_metadata(spec), source)
    except DmdeltaError:
        return None


def _lakehouse_finding(spec: TaskSpec) -> TaskFinding:
    try:
        open_suites(spec)
        task = open_task(spec, writing=False, beside_run=True)
        state = table_state(task.spark, task.lakehouse.bronze)
        if state is not None:
            state.assert_owned(task.lakehouse.bronze, spec.name)
    except DmdeltaError as error:
        return TaskFinding("lakehouse", "bronze", Level.FAIL, error.message, error.hint or "")
    state_text = "exists" if state is not None else "will be created by the first run"
    return TaskFinding("lakehouse", "bronze", Level.PASS, f"{task.lakehouse.bronze} {state_text}", "")
