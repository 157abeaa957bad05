"""Expression filters: MySQL expressions over a row, translated to conditions that Spark evaluates.

A condition is true for exactly the rows for which MySQL's WHERE is true; an expression that cannot be translated this
way is refused with the reason. One exception comes from silver: dates that Delta cannot hold, such as '0000-00-00', are
NULL.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Literal

from dmdelta.model.events import RowEvent
from dmdelta.model.schema import TableSchema

if TYPE_CHECKING:
    from dmdelta.config.expression_filter import ExpressionFilterRule
    from dmdelta.rules.expressions.terms import ColumnSql


def left_out(
    rules: Collection["ExpressionFilterRule"],
    schema: TableSchema,
    event: RowEvent,
    *,
    before: "ColumnSql",
    after: "ColumnSql",
    flavor: Literal["mysql", "mariadb"] = "mysql",
) -> str | None:
    """The condition, never NULL, for row changes that the rules filter out; None if no rule applies.

    Schema and table names are compared case-insensitively.

    Args:
        before, after: the SQL of a column in the images of a change; a rule for deletes reads `before`.

    Raises:
        ConfigError: as `translate`.
    """
    # Imported on demand: without expressions, the parser would be an eighth of a run's import time.
    from dmdelta.rules.expressions.translate import translate  # noqa: PLC0415

    conditions: list[str] = []
    for rule in rules:
        if (rule.schema_.lower(), rule.table.lower()) != (schema.schema.lower(), schema.table.lower()):
            continue
        sides = {
            "insert": ((rule.insert_value_expr, after),),
            "update": ((rule.update_old_value_expr, before), (rule.update_new_value_expr, after)),
            "delete": ((rule.delete_value_expr, before),),
        }[event]
        parts = [translate(text, schema, side, flavor=flavor) for text, side in sides if text is not None]
        if parts:
            conditions.append(" AND ".join(f"coalesce({part}, FALSE)" for part in parts))
    return " OR ".join(f"({condition})" for condition in conditions) or None
