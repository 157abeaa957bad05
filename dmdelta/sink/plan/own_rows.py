"""Which rows of a table in the target belong to a source table."""

from collections.abc import Collection

from dmdelta.model.mysql_sql import quoted_name, text
from dmdelta.model.schema import TableName
from dmdelta.rules import SourceRules


def own_rows(rules: SourceRules, name: TableName, others: Collection[TableName], sources: int) -> str | None:
    """The condition (SQL) that selects a source table's rows; '' for all rows, None if nothing identifies them.

    Args:
        others: the source's other tables.
        sources: number of the task's sources.
    """
    route = rules.route(*name)
    if not route.merged:
        return ""
    same = [rules.route(*other).extracted for other in others if rules.route(*other).name == route.name]
    if sources > 1 or not route.extracted or route.extracted in same:
        return None
    return " AND ".join(
        f"CONVERT({quoted_name(column)} USING utf8mb4) = {text(value)} COLLATE utf8mb4_bin"
        for column, value in route.extracted
    )
