"""Checks whether the expression filters of a spec can be evaluated the way the server evaluates them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dmdelta.errors import ConfigError
from dmdelta.model.events import ROW_EVENTS
from dmdelta.model.gtid import Flavor
from dmdelta.model.schema import TableSchema
from dmdelta.rules.expression_filter import left_out
from dmdelta.source.preflight.finding import Finding, Level

if TYPE_CHECKING:
    from dmdelta.config.expression_filter import ExpressionFilterRule

CHECK = "expression_filter"


def check_expressions(
    rules: "Sequence[ExpressionFilterRule]", tables: Sequence[TableSchema], flavor: Flavor
) -> Iterator[Finding]:
    """A finding for each table that has a filter, and for each filter without a table."""
    names = {(table.schema.lower(), table.table.lower()): table for table in tables}
    for rule in rules:
        table = names.get((rule.schema_.lower(), rule.table.lower()))
        if table is None:
            message = f"a filter names {rule.schema_}.{rule.table}, which does not exist or is not selected"
            yield Finding(CHECK, Level.WARN, message, "correct its schema and table")
        else:
            yield _check(rule, table, flavor)


def _check(rule: "ExpressionFilterRule", table: TableSchema, flavor: Flavor) -> Finding:
    try:
        for event in ROW_EVENTS:
            left_out((rule,), table, event, before=str, after=str, flavor=flavor)
    except ConfigError as error:
        return Finding(CHECK, Level.FAIL, error.message, error.hint or "")
    return Finding(CHECK, Level.PASS, f"the filter of {table} is evaluated as the server evaluates it")
