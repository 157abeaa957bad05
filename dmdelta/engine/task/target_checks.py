"""The preflight of the sink's target: what `dmdelta check` lists, and a run logs at its start."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dmdelta.config import SinkConfig
from dmdelta.engine.task.mapping import target_server
from dmdelta.engine.task.risks import SelectedTables
from dmdelta.errors import DmdeltaError
from dmdelta.model.schema import TableName
from dmdelta.sink.plan.table_checks import TargetCheck, plan_table_checks
from dmdelta.sink.target.connection import session
from dmdelta.sink.target.preflight import plan_target_checks, read_target_facts, read_target_tables
from dmdelta.source.catalog import read_schemas
from dmdelta.source.preflight.finding import Finding, Level


@dataclass(frozen=True, slots=True)
class TargetFindings:
    """
    Attributes:
        findings: of the server, its account, its sessions and its tables.
        keys: which of the sink's tables exist, and whether each has a key.
    """

    findings: tuple[Finding, ...]
    keys: Mapping[TableName, bool] = field(default_factory=dict)


def check_target(sink: SinkConfig, selected: SelectedTables) -> TargetFindings:
    """Ask the target. One that does not answer, or refuses the account, is a finding, not an error."""
    server, targets, tidb = target_server(sink), frozenset(selected.targets.values()), sink.kind == "tidb"
    try:
        facts = read_target_facts(server)
        with session(server) as connection:
            existing = read_schemas(connection, lambda *name: name in targets)
        tables = read_target_tables(server, existing)
    except DmdeltaError as error:
        return TargetFindings((Finding("connection", Level.FAIL, error.message, error.hint or ""),))
    schemas = {schema for schema, _ in targets}
    checks = plan_target_checks(facts, tidb=tidb, schemas=schemas, metadata=sink.metadata)
    checks += plan_table_checks(selected.structures, tables, tidb=tidb)
    findings = tuple(Finding(check.name, _level(check), check.message, check.fix) for check in checks)
    return TargetFindings(findings, {table.name: bool(table.primary_key) for table in existing})


def _level(check: TargetCheck) -> Level:
    if check.passes:
        return Level.PASS
    return Level.FAIL if check.stops else Level.WARN
