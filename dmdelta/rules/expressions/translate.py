"""One expression of MySQL's, read by sqlglot, as one of Spark's."""

from typing import Literal

import sqlglot
from sqlglot.errors import SqlglotError

from dmdelta.errors import ConfigError
from dmdelta.model.schema import TableSchema
from dmdelta.rules.expressions.leaves import ColumnSql
from dmdelta.rules.expressions.translation import Translation
from dmdelta.rules.expressions.values import Refusal, truth


def translate(
    expression: str,
    schema: TableSchema,
    column_sql: ColumnSql,
    *,
    flavor: Literal["mysql", "mariadb"] = "mysql",
) -> str:
    """A boolean expression of Spark's that is true where MySQL's is; it never fails, whatever the row.

    Args:
        flavor: of the server whose WHERE counts.

    Raises:
        ConfigError: it has a part that Spark does not compute as MySQL does, or is no expression over this table.
    """
    hint = "write the filter without that part, or filter where silver is read"
    try:
        parsed = sqlglot.parse(expression, dialect="mysql")
    except SqlglotError as error:
        first = str(error).splitlines()[0]
        raise ConfigError(f"the expression {expression!r} cannot be read: {first}", hint=hint) from error
    if len(parsed) != 1 or parsed[0] is None:
        raise ConfigError(f"{expression!r} is not one expression", hint=hint)
    try:
        return truth(Translation(schema, column_sql, flavor).value(parsed[0]))
    except Refusal as refusal:
        message = f"the expression {expression!r} cannot be translated: {refusal.part}: {refusal.reason}"
        raise ConfigError(message, hint=hint, table=str(schema)) from refusal
