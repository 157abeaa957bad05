"""Translates one MySQL expression, parsed by sqlglot, to Spark SQL."""

from typing import Literal

import sqlglot
from sqlglot.errors import SqlglotError

from dmdelta.errors import ConfigError
from dmdelta.model.schema import TableSchema
from dmdelta.rules.expressions.terms import ColumnSql
from dmdelta.rules.expressions.translation import Translation
from dmdelta.rules.expressions.values import Refusal, truth


def translate(
    expression: str,
    schema: TableSchema,
    column_sql: ColumnSql,
    *,
    flavor: Literal["mysql", "mariadb"] = "mysql",
) -> str:
    """A boolean Spark expression that is true where MySQL's is; it never fails, for any row.

    Args:
        flavor: of the server whose WHERE semantics apply.

    Raises:
        ConfigError: a part cannot be evaluated by Spark as MySQL does, or the text is not an expression over this
            table.
    """
    hint = "remove that part from the filter, or filter when reading silver"
    try:
        parsed = sqlglot.parse(expression, dialect="mysql")
    except SqlglotError as error:
        first = str(error).splitlines()[0]
        raise ConfigError(f"the expression {expression!r} cannot be parsed: {first}", hint=hint) from error
    if len(parsed) != 1 or parsed[0] is None:
        raise ConfigError(f"{expression!r} is not one expression", hint=hint)
    try:
        return truth(Translation(schema, column_sql, flavor).value(parsed[0]))
    except Refusal as refusal:
        message = f"the expression {expression!r} cannot be translated: {refusal.part}: {refusal.reason}"
        raise ConfigError(message, hint=hint, table=str(schema)) from refusal
