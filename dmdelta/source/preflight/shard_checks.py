"""Checks tables that routes merge, before a task runs: DM's prechecks of shards."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dmdelta.ddl.types.outcome import widens
from dmdelta.ddl.types.silver_types import silver_type
from dmdelta.model.schema import SYSTEM_SCHEMAS, TableName, TableSchema
from dmdelta.rules import SourceRules
from dmdelta.source.catalog import read_schemas
from dmdelta.source.connection import query
from dmdelta.source.preflight.finding import Finding, Level, listed

if TYPE_CHECKING:
    from pymysql.connections import Connection

_AUTO_INCREMENT = """
SELECT table_schema, table_name, column_name FROM information_schema.columns
WHERE extra LIKE '%%auto_increment%%' AND table_schema NOT IN %s
"""


@dataclass(frozen=True, slots=True)
class ShardFacts:
    """A table that a route merges with others.

    Attributes:
        target: the silver table that it is written to.
        told_apart: what the route extracts for its rows.
        auto_increment: its AUTO_INCREMENT column, if that is its key.
    """

    source_id: str
    schema: TableSchema
    target: TableName
    told_apart: tuple[tuple[str, str], ...]
    auto_increment: str | None

    def __str__(self) -> str:
        return f"{self.source_id}'s {self.schema}"


def read_shards(
    connection: "Connection[Any]", rules: SourceRules, tables: Sequence[TableSchema] | None = None
) -> list[ShardFacts]:
    """The tables of a source that its routes merge.

    Args:
        tables: the selected ones, if they have been read already.

    Raises:
        SourceUnavailable, SourceError: the server does not answer.
        ConfigError: two routes match a table.
    """
    tables = read_schemas(connection, rules.wanted) if tables is None else tables
    merged = [(schema, route) for schema in tables if (route := rules.route(*schema.name)).merged]
    if not merged:
        return []
    auto_increment = {(row[0], row[1]): row[2] for row in query(connection, _AUTO_INCREMENT, (SYSTEM_SCHEMAS,))}
    shards = []
    for schema, route in merged:
        column = auto_increment.get(schema.name)
        key = column if schema.primary_key == (column,) else None
        shards.append(ShardFacts(rules.source_id, schema, route.name, route.extracted, key))
    return shards


def shard_findings(shards: Sequence[ShardFacts], mode: str | None) -> list[Finding]:
    """Evaluate the shards of all sources; empty if no tables are merged.

    Args:
        mode: `shard-mode`; None: shard DDL is not coordinated.
    """
    groups: dict[TableName, list[ShardFacts]] = defaultdict(list)
    for shard in shards:
        groups[shard.target].append(shard)
    if not groups:
        return []
    return [_structures(groups, mode), _auto_increment(groups)]


def _structures(groups: dict[TableName, list[ShardFacts]], mode: str | None) -> Finding:
    name = "schema_of_shard_tables"
    problems = [
        f"{shard} and {group[0]}, which are merged into {'.'.join(target)}: {difference}"
        for target, group in groups.items()
        for shard in group[1:]
        if (difference := _difference(group[0].schema, shard.schema, mode))
    ]
    if not problems:
        return Finding(name, Level.PASS, f"the shards of {len(groups):,} merged tables have compatible structures")
    fix = "ALTER them to have the same columns" + ("" if mode == "optimistic" else ", or use shard-mode: optimistic")
    level = Level.WARN if mode == "pessimistic" else Level.FAIL
    return Finding(name, level, f"shards have different columns: {listed(problems)}", fix)


def _difference(one: TableSchema, other: TableSchema, mode: str | None) -> str | None:
    """Why the two structures cannot be merged now; None if they can."""
    first, second = ({column.name.lower(): silver_type(column) for column in schema.columns} for schema in (one, other))
    for column in first.keys() | second.keys():
        left, right = first.get(column), second.get(column)
        if left is None or right is None:
            if mode != "optimistic":
                return f"only one has column {column}"
        elif left != right and not (mode == "optimistic" and (widens(left, right) or widens(right, left))):
            return f"{column} is {left} in one, {right} in the other"
    return None


def _auto_increment(groups: dict[TableName, list[ShardFacts]]) -> Finding:
    name = "auto_increment_ID"
    clashing = [
        f"{shard} ({shard.auto_increment})"
        for group in groups.values()
        for shard in group
        if shard.auto_increment and sum(other.told_apart == shard.told_apart for other in group) > 1
    ]
    if not clashing:
        return Finding(name, Level.PASS, "no shard has a conflicting AUTO_INCREMENT key")
    message = (
        f"AUTO_INCREMENT gives several shards the same keys: {listed(clashing)}. Silver keeps each shard's row and "
        "counts such keys (shard-key-clash)"
    )
    fix = "let a route extract a column that identifies the shard, or use unique keys"
    return Finding(name, Level.WARN, message, fix)
