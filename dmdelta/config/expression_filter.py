"""Section `expression-filter`: which row changes are filtered out by their values."""

from typing import Annotated

from pydantic import Field, model_validator

from dmdelta.config.section import Section

Name = Annotated[str, Field(min_length=1)]
Expression = Annotated[str, Field(min_length=1)]


class ExpressionFilterRule(Section):
    """Row changes of one table that are filtered out: those for which an expression, in MySQL's SQL, is true."""

    schema_: Name
    """Name of the schema, not a pattern."""

    table: Name
    """Name of the table, not a pattern."""

    insert_value_expr: Expression | None = None
    """Filters out inserts for which this expression is true. A rule with this key has no other expression."""

    update_old_value_expr: Expression | None = None
    """Filters out updates for which this expression is true of the row before the update and, if
    `update-new-value-expr` is also set, that expression is true of the row after it."""

    update_new_value_expr: Expression | None = None
    """Filters out updates for which this expression is true of the row after the update and, if `update-old-value-expr`
    is also set, that expression is true of the row before it."""

    delete_value_expr: Expression | None = None
    """Filters out deletes for which this expression is true. A rule with this key has no other expression."""

    @model_validator(mode="after")
    def _one_kind(self) -> "ExpressionFilterRule":
        updates = self.update_old_value_expr is not None or self.update_new_value_expr is not None
        kinds = [self.insert_value_expr is not None, updates, self.delete_value_expr is not None]
        if sum(kinds) != 1:
            raise ValueError("a rule must have expressions for exactly one kind of change: insert, update or delete")
        return self
