"""The rows of a filtered table that are excluded from the comparison, as conditions in the source's and Spark's SQL."""

from dmdelta.model.gtid import Flavor
from dmdelta.model.schema import TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.quality.canonical import Sides
from dmdelta.rules.comparable_rows import ComparableRows


def left_out_rows(compared: ComparableRows, schema: TableSchema, flavor: Flavor) -> Sides | None:
    """The condition of the rows that are not compared, never NULL; None: all rows are compared.

    The server evaluates the expressions of the spec unchanged.

    Raises:
        ConfigError: an expression has a part that Spark does not evaluate like the server.
    """
    if not compared.expressions:
        return None
    # Imported here: only expressions require the parser.
    from dmdelta.rules.expressions.translate import translate  # noqa: PLC0415

    parts = [
        translate(expression, schema, lambda column: quote(column.name), flavor=flavor)
        for expression in compared.expressions
    ]
    return Sides(compared.source_condition, " OR ".join(f"coalesce({part}, FALSE)" for part in parts))
