"""Which silver table a source table is routed to, the constant columns that it adds, and which tables are merged.

DM's rules (pingcap/tidb, pkg/util/table-router): a rule with a table pattern takes precedence over rules without; two
matching rules of the same kind are an error; a table that no rule matches keeps its name.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dmdelta.errors import ConfigError
from dmdelta.model.schema import TableName
from dmdelta.rules.patterns import is_exact, matches, regular_expression, rules_for

if TYPE_CHECKING:
    from dmdelta.config.routes import RouteRule


@dataclass(frozen=True, slots=True)
class Route:
    """The target of a table.

    Attributes:
        extracted: the constant columns, as pairs of name and value.
        merged: other tables can be routed to the same target.
    """

    schema: str
    table: str
    extracted: tuple[tuple[str, str], ...] = ()
    merged: bool = False

    @property
    def name(self) -> TableName:
        return (self.schema, self.table)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of `routes`.

    Attributes:
        table_pattern: None for a rule for every table of the schema.
        target_table: None: the table keeps its name.
        extracts: the source of a column's value (`table`, `schema` or `source`), the regular expression, the column.
        merges: several tables can have the same target.
    """

    name: str
    schema_pattern: str
    table_pattern: str | None
    target_schema: str
    target_table: str | None
    extracts: tuple[tuple[str, str, str], ...] = ()
    merges: bool = False


@dataclass(frozen=True, slots=True)
class Routes:
    """Decides for every table."""

    rules: tuple[Rule, ...] = ()
    case_sensitive: bool = False

    @classmethod
    def from_config(
        cls,
        rules: Mapping[str, "RouteRule"],
        *,
        of_others: Sequence["RouteRule"] = (),
        case_sensitive: bool = False,
    ) -> "Routes":
        """Convert the rules of the spec.

        Args:
            of_others: the rules of the task's other sources, whose tables can have the same targets.
        """
        every = [*rules.values(), *of_others]
        return cls(
            tuple(_rule(name, rule, merges=_merges(rule, every)) for name, rule in rules.items()), case_sensitive
        )

    def route(self, source_id: str, schema: str, table: str) -> Route:
        """The target of a source table.

        Raises:
            ConfigError: two rules of the same kind match.
        """
        matching = rules_for((schema, table), self.rules, case_sensitive=self.case_sensitive)
        matching = [rule for rule in matching if rule.table_pattern is not None] or matching
        if len(matching) > 1:
            raise ConfigError(
                f"two routes match {schema}.{table}: {matching[0].name!r} and {matching[1].name!r}",
                hint="make their patterns disjoint, or list only one of them in the source's route-rules",
            )
        if not matching:
            return Route(schema, table)
        names = {"table": table, "schema": schema, "source": source_id}
        columns = tuple((column, _extracted(pattern, names[of])) for of, pattern, column in matching[0].extracts)
        return Route(matching[0].target_schema, matching[0].target_table or table, columns, matching[0].merges)

    def shares_database(self, schema: str) -> bool:
        """Whether the tables of a schema have several targets, or their target can have tables of other schemas."""
        own = [rule for rule in self.rules if matches(rule.schema_pattern, schema, case_sensitive=self.case_sensitive)]
        targets = {rule.target_schema.lower() for rule in own} or {schema.lower()}
        others = {rule.target_schema.lower() for rule in self.rules if rule not in own}
        return bool(targets & others) or any(rule.merges or rule.table_pattern is not None for rule in own)


def _extracted(pattern: str, name: str) -> str:
    """The concatenation of what the groups match; an unmatched group, and no match at all, are ''."""
    match: re.Match[str] | None = regular_expression(pattern).search(name)
    return "" if match is None else "".join(match.groups(""))


def _merges(rule: "RouteRule", every: Sequence["RouteRule"]) -> bool:
    """Whether a rule can route several tables to one target, alone or together with the task's other rules."""
    many_schemas = not is_exact(rule.schema_pattern)
    many_tables = rule.target_table is not None and (rule.table_pattern is None or not is_exact(rule.table_pattern))
    return many_schemas or many_tables or sum(_can_share_target(rule, other) for other in every) > 1


def _can_share_target(rule: "RouteRule", other: "RouteRule") -> bool:
    """Whether tables of both rules can have the same target."""
    if rule.target_schema != other.target_schema:
        return False
    return rule.target_table is None or other.target_table is None or rule.target_table == other.target_table


def _rule(name: str, rule: "RouteRule", *, merges: bool) -> Rule:
    extracts: list[tuple[str, str, str]] = []
    if rule.extract_table is not None:
        extracts.append(("table", rule.extract_table.table_regexp, rule.extract_table.target_column))
    if rule.extract_schema is not None:
        extracts.append(("schema", rule.extract_schema.schema_regexp, rule.extract_schema.target_column))
    if rule.extract_source is not None:
        extracts.append(("source", rule.extract_source.source_regexp, rule.extract_source.target_column))
    return Rule(
        name=name,
        schema_pattern=rule.schema_pattern,
        table_pattern=rule.table_pattern,
        target_schema=rule.target_schema,
        target_table=rule.target_table,
        extracts=tuple(extracts),
        merges=merges,
    )
