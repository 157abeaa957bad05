"""Checks whether the task can run. Every source and the lakehouse are queried, nothing is written."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from dmdelta.config import SourceConfig, TaskSpec
from dmdelta.engine.sink import target_server
from dmdelta.engine.task.mapping import FIRST_TRY, reading_of, relay_task
from dmdelta.engine.task.task import open_suites, open_task
from dmdelta.errors import DmdeltaError
from dmdelta.lakehouse.tables import table_state
from dmdelta.rules import SourceRules
from dmdelta.sink.target.preflight import TargetCheck, plan_target_checks, read_target_facts
from dmdelta.source.catalog import read_schemas
from dmdelta.source.connection import open_connection
from dmdelta.source.preflight.finding import Finding, Level, listed
from dmdelta.source.preflight.server_checks import check_relay
from dmdelta.source.preflight.shard_checks import ShardFacts, read_shards, shard_findings
from dmdelta.source.preflight.table_checks import check_tables
from dmdelta.source.relay.archive import archive_files


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
    shards: list[ShardFacts] = []
    schemas: set[str] = set()
    findings = [
        TaskFinding(source.source_id, finding.name, finding.level, finding.message, finding.fix)
        for source in spec.sources
        for finding in _source_findings(spec, source, shards, schemas)
    ]
    findings += [
        TaskFinding("shards", finding.name, finding.level, finding.message, finding.fix)
        for finding in shard_findings(shards, spec.shard_mode)
    ]
    findings += _sink_findings(spec, shards)
    findings += _safe_mode_findings(spec, shards)
    findings += _target_findings(spec, schemas)
    counted = [finding for finding in findings if not spec.is_ignored(finding.check)]
    return [*counted, *_unknown_checks(spec, {finding.check for finding in findings}), _lakehouse_finding(spec)]


def _sink_findings(spec: TaskSpec, shards: Collection[ShardFacts]) -> list[TaskFinding]:
    """The sink executes each shard's statements without coordination."""
    merged = sorted({".".join(shard.target) for shard in shards})
    if spec.sink is None or spec.shard_mode is None or not merged:
        return []
    message = (
        f"shard-mode does not apply to the sink, which writes {listed(merged)}: it executes each shard's statements"
    )
    fix = "sink these tables from a task without shard-mode, alter all shards the same way, or remove the sink"
    return [TaskFinding("sink", "shard_ddl", Level.FAIL, message, fix)]


def _safe_mode_findings(spec: TaskSpec, shards: Collection[ShardFacts]) -> list[TaskFinding]:
    """Safe mode for a whole run costs, and its REPLACE deletes every row of the target that has the same key."""
    if not (spec.syncer.safe_mode or (spec.sink is not None and spec.sink.safe_mode)):
        return []
    message = "safe-mode: true applies every change as if it may have been applied before, which is slower"
    merged = sorted({".".join(shard.target) for shard in shards})
    if spec.sink is not None:
        message += "; the sink's REPLACE deletes other rows with the same key, and rows without a key may be duplicated"
        message += f". Shards of {listed(merged)} may share keys" if merged else ""
    fix = "remove safe-mode once the range in doubt is applied: restarts enable it where it is needed"
    return [TaskFinding("spec", "safe_mode", Level.WARN, message, fix)]


def _target_findings(spec: TaskSpec, schemas: Collection[str]) -> list[TaskFinding]:
    """The sink's target: a server of the spec's kind, where the account may do what the sink does."""
    if spec.sink is None:
        return []
    try:
        facts = read_target_facts(target_server(spec.sink))
    except DmdeltaError as error:
        return [TaskFinding("sink", "connection", Level.FAIL, error.message, error.hint or "")]
    tidb, metadata = spec.sink.kind == "tidb", spec.sink.metadata
    checks = plan_target_checks(facts, tidb=tidb, schemas=schemas, metadata=metadata)
    return [TaskFinding("sink", check.name, _level(check), check.message, check.fix) for check in checks]


def _level(check: TargetCheck) -> Level:
    if check.passes:
        return Level.PASS
    return Level.FAIL if check.stops else Level.WARN


def _unknown_checks(spec: TaskSpec, names: Collection[str]) -> list[TaskFinding]:
    """A name that ignores nothing is probably misspelled."""
    wrong = [name for name in spec.ignore_checking_items if name not in names and name != "all"]
    message, fix = "ignore-checking-items: no such check", "use the names that this table shows"
    return [TaskFinding("spec", name, Level.WARN, message, fix) for name in wrong]


def _source_findings(
    spec: TaskSpec, source: SourceConfig, shards: list[ShardFacts], schemas: set[str]
) -> Iterator[Finding]:
    """All findings of a source; its merged tables are added to `shards`, and where its tables go to `schemas`."""
    task = relay_task(spec, source, until_caught_up=False)
    try:
        if task.endpoint is None:
            files = archive_files(Path(task.binlog_dir or ""))
            yield Finding("archive", Level.PASS, f"{len(files)} binlog files, {sum(files.values()):,} bytes")
            return
        with open_connection(task.endpoint, FIRST_TRY) as connection:
            yield from check_relay(connection, task)
            rules = SourceRules.from_spec(spec, source)
            yield from check_tables(connection, rules, reading_of(spec, source))
            shards += read_shards(connection, rules)
            if spec.sink is not None:
                schemas |= {rules.route(*table.name).schema for table in read_schemas(connection, rules.wanted)}
    except DmdeltaError as error:
        yield Finding("connection", Level.FAIL, error.message, error.hint or "")


def _lakehouse_finding(spec: TaskSpec) -> TaskFinding:
    try:
        open_suites(spec)
        task = open_task(spec, writing=False)
        state = table_state(task.spark, task.lakehouse.bronze)
        if state is not None:
            state.assert_owned(task.lakehouse.bronze, spec.name)
    except DmdeltaError as error:
        return TaskFinding("lakehouse", "bronze", Level.FAIL, error.message, error.hint or "")
    state_text = "exists" if state is not None else "will be created by the first run"
    return TaskFinding("lakehouse", "bronze", Level.PASS, f"{task.lakehouse.bronze} {state_text}", "")
