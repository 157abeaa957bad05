"""Whether a source table can be compared with the sink's target, and which rows of a table there are its."""

from collections.abc import Collection
from dataclasses import dataclass

from dmdelta.model.schema import TableName
from dmdelta.rules import SourceRules
from dmdelta.rules.comparable_rows import ComparableRows, plan_comparable_rows
from dmdelta.sink.plan.sql import quoted, text


@dataclass(frozen=True, slots=True)
class SinkTable:
    """A source table and where its rows are in the target.

    Attributes:
        name: of the source table.
        target: schema and table in the target.
        own_rows: the condition (SQL) of its rows there; '' for all.
    """

    name: TableName
    target: TableName
    compared: ComparableRows
    own_rows: str = ""


def plan_sink_table(
    rules: SourceRules, name: TableName, others: Collection[TableName], sources: int
) -> SinkTable | str:
    """How a table is compared with the target, or why it is not.

    Args:
        others: the source's other tables.
        sources: how many the task has.
    """
    compared = plan_comparable_rows(rules, name)
    if isinstance(compared, str):
        return compared
    if compared.inserts or compared.outdated:
        return (
            "its expression-filter leaves inserts or updates out, and an UPDATE finds no row in the target that was "
            "left out: which rows it has depends on their history"
        )
    route = rules.route(*name)
    if not route.merged:
        return SinkTable(name, route.name, compared)
    same = [rules.route(*other).extracted for other in others if rules.route(*other).name == route.name]
    if sources > 1 or not route.extracted or route.extracted in same:
        return "its rows are among those of other tables in the target, and no extracted column tells which they are"
    return SinkTable(
        name,
        route.name,
        compared,
        " AND ".join(
            f"CONVERT({quoted(column)} USING utf8mb4) = {text(value)} COLLATE utf8mb4_bin"
            for column, value in route.extracted
        ),
    )
