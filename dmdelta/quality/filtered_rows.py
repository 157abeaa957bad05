"""The rows of a filtered table that are not compared, as conditions of the source's SQL and of Spark's."""

from dmdelta.model.gtid import Flavor
from dmdelta.model.schema import TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.quality.canonical import Sides
from dmdelta.rules.comparable_rows import ComparableRows


def left_out_rows(compared: ComparableRows, schema: TableSchema, flavor: Flavor) -> Sides | None:
    """The condition of the rows that are not compared, never NULL; None: all rows are compared.

    The server computes its side itself, from the spec's own text.

    Raises:
        ConfigError: an expression has a part that Spark does not compute as the server does.
    """
    if not compared.expressions:
        return None
    # Whoever has no expressions does without the parser.
    from dmdelta.rules.expressions.translate import translate  # noqa: PLC0415

    parts = [translate(said, schema, lambda column: quote(column.name), flavor=flavor) for said in compared.expressions]
    return Sides(compared.source_condition, " OR ".join(f"coalesce({part}, FALSE)" for part in parts))
