"""Section `expression-filter`: which row changes are left out by their values."""

from typing import Annotated

from pydantic import Field, model_validator

from dmdelta.config.section import Section

Name = Annotated[str, Field(min_length=1)]
Expression = Annotated[str, Field(min_length=1)]


class ExpressionFilterRule(Section):
    """Row changes of one table that are left out: those for which an expression, in MySQL's SQL, is true."""

    schema_: Name
    """Name of the schema, no pattern."""

    table: Name
    """Name of the table, no pattern."""

    insert_value_expr: Expression | None = None
    """Inserts are left out whose row this is true for. A rule with it has no other expression."""

    update_old_value_expr: Expression | None = None
    """Updates are left out whose row before this is true for, and `update-new-value-expr` of the row after, if that is
    given, too."""

    update_new_value_expr: Expression | None = None
    """Updates are left out whose row after this is true for, and `update-old-value-expr` of the row before, if that is
    given, too."""

    delete_value_expr: Expression | None = None
    """Deletes are left out whose row this is true for. A rule with it has no other expression."""

    @model_validator(mode="after")
    def _one_kind(self) -> "ExpressionFilterRule":
        updates = self.update_old_value_expr is not None or self.update_new_value_expr is not None
        kinds = [self.insert_value_expr is not None, updates, self.delete_value_expr is not None]
        if sum(kinds) != 1:
            raise ValueError("a rule has the expressions of one kind of change: insert, update or delete")
        return self
