"""What may lose or duplicate rows although the task can run: settings and tables for which DM warns, too.

`dmdelta check` lists the findings, and the start of a run logs them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dmdelta.config import TaskSpec
from dmdelta.model.schema import ConstantColumn, TableName, TableSchema
from dmdelta.rules import Route, SourceRules
from dmdelta.source.catalog import read_schemas
from dmdelta.source.preflight.finding import Finding, Level, listed
from dmdelta.source.preflight.shard_checks import ShardFacts, read_shards, shard_findings

if TYPE_CHECKING:
    from pymysql.connections import Connection


@dataclass(frozen=True, slots=True)
class SelectedTables:
    """The selected tables of one source, or of all.

    Attributes:
        targets: where each of them is written to, by its own name with the source's.
        keyless: those without a primary key, and without a unique key whose columns are not nullable.
        shards: those that a route merges with others.
        structures: their structures, under the names and with the columns of the tables that they are written to.
    """

    targets: Mapping[tuple[str, TableName], TableName]
    keyless: frozenset[tuple[str, TableName]] = frozenset()
    shards: tuple[ShardFacts, ...] = ()
    structures: tuple[TableSchema, ...] = ()

    @classmethod
    def of_all(cls, sources: Collection["SelectedTables"]) -> "SelectedTables":
        """Those of several sources."""
        return cls(
            {name: target for one in sources for name, target in one.targets.items()},
            frozenset(name for one in sources for name in one.keyless),
            tuple(shard for one in sources for shard in one.shards),
            tuple(structure for one in sources for structure in one.structures),
        )


@dataclass(frozen=True, slots=True)
class Risk:
    """A finding, and what it concerns: `spec`, `shards` or `sink`."""

    concerns: str
    finding: Finding


def read_selected(connection: "Connection[Any]", rules: SourceRules) -> SelectedTables:
    """The selected tables of a source, from its catalog.

    Raises:
        SourceUnavailable, SourceError: the server does not answer.
        ConfigError: two routes match a table.
    """
    source, tables = rules.source_id, read_schemas(connection, rules.wanted)
    return SelectedTables(
        {(source, table.name): rules.route(*table.name).name for table in tables},
        frozenset((source, table.name) for table in tables if not table.primary_key),
        tuple(read_shards(connection, rules, tables)),
        tuple(_routed(table, rules.route(*table.name)) for table in tables),
    )


def _routed(table: TableSchema, route: Route) -> TableSchema:
    constants = tuple(ConstantColumn(name, "varchar", value=value) for name, value in route.extracted)
    return replace(table, schema=route.schema, table=route.table, columns=(*table.columns, *constants))


def plan_risks(
    spec: TaskSpec, selected: SelectedTables, sink_keys: Mapping[TableName, bool] | None = None
) -> list[Risk]:
    """Evaluate a spec and the tables of all sources; nothing but warnings.

    Args:
        sink_keys: the tables that the sink's target has, and whether each has a key; None: unknown.
    """
    risks = list(_safe_mode(spec, selected))
    if spec.sink is not None:
        risks += [*_keyless_in_sink(selected, sink_keys or {}), *_keys_of_shards(spec, selected)]
    return risks


def shard_risks(spec: TaskSpec, selected: SelectedTables) -> list[Risk]:
    """The findings of merged tables that are warnings: silver has rules for them, which the operator should know."""
    found = shard_findings(selected.shards, spec.shard_mode)
    return [Risk("shards", finding) for finding in found if finding.level is Level.WARN]


def _safe_mode(spec: TaskSpec, selected: SelectedTables) -> Iterator[Risk]:
    """Safe mode for a whole run costs, and its REPLACE deletes every row of the target that has the same key."""
    settings = _safe_settings(spec)
    if not settings:
        return
    message = f"{settings}: true applies every change as if it may have been applied before, which is slower"
    merged = sorted({".".join(shard.target) for shard in selected.shards})
    if spec.sink is not None:
        message += "; the sink's REPLACE deletes other rows with the same key, and rows without a key may be duplicated"
        message += f". Shards of {listed(merged)} may share keys" if merged else ""
    fix = "remove it (or --safe-mode) once the range in doubt is applied: restarts enable safe mode where it is needed"
    yield Risk("spec", Finding("safe_mode", Level.WARN, message, fix))


def _safe_settings(spec: TaskSpec) -> str:
    """The settings that turn safe mode on for the whole run; '' if none does."""
    on = {"syncer.safe-mode": spec.syncer.safe_mode, "sink.safe-mode": spec.sink is not None and spec.sink.safe_mode}
    return " and ".join(name for name, is_on in on.items() if is_on)


def _keyless_in_sink(selected: SelectedTables, sink_keys: Mapping[TableName, bool]) -> Iterator[Risk]:
    """Tables without a key in the target, or that will be created there without one."""
    created = {selected.targets[name] for name in selected.keyless}
    keyless = [
        ".".join(target)
        for target in sorted(set(selected.targets.values()))
        if (not sink_keys[target] if target in sink_keys else target in created)
    ]
    if keyless:
        message = (
            f"without a primary or unique key in the sink's target: {listed(keyless)}: updates and deletes find rows "
            "by all columns, which is slow, and ranges that are executed again in safe mode may duplicate rows"
        )
        fix = "ALTER TABLE … ADD PRIMARY KEY, at the source and in the target"
        yield Risk("sink", Finding("primary_key", Level.WARN, message, fix))


def _keys_of_shards(spec: TaskSpec, selected: SelectedTables) -> Iterator[Risk]:
    """Merged tables with keys that nothing makes distinct: unlike silver, the target has one row for each key."""
    groups: dict[TableName, list[ShardFacts]] = defaultdict(list)
    for shard in selected.shards:
        if shard.schema.primary_key:
            groups[shard.target].append(shard)
    alike = sorted(".".join(target) for target, shards in groups.items() if _share_keys(shards))
    if not alike:
        return
    consequence = "replaces the row" if _safe_settings(spec) else "stops the sink, and in safe mode replaces the row"
    message = (
        f"shards of {listed(alike)} may have the same keys: a second row with such a key {consequence} of the target"
    )
    fix = "use keys that are unique across the shards, or let a route extract a column that is part of the target's key"
    yield Risk("sink", Finding("shard_keys", Level.WARN, message, fix))


def _share_keys(shards: Collection[ShardFacts]) -> bool:
    return len({shard.told_apart for shard in shards}) < len(shards)
