"""Plans how a source table is compared with the sink's target: whether it can be, and which rows there are its own."""

from collections.abc import Collection
from dataclasses import dataclass

from dmdelta.model.schema import TableName
from dmdelta.rules import SourceRules
from dmdelta.rules.comparable_rows import ComparableRows, plan_comparable_rows
from dmdelta.sink.plan.reload import own_rows


@dataclass(frozen=True, slots=True)
class SinkTable:
    """A source table, and the place of its rows in the target.

    Attributes:
        name: the source table.
        target: schema and table in the target.
        own_rows: the condition (SQL) that selects its rows there; '' for all.
    """

    name: TableName
    target: TableName
    compared: ComparableRows
    own_rows: str = ""


def plan_sink_table(
    rules: SourceRules, name: TableName, others: Collection[TableName], sources: int
) -> SinkTable | str:
    """Plan how a table is compared with the target, or return why it cannot be.

    Args:
        others: the source's other tables.
        sources: number of the task's sources.
    """
    compared = plan_comparable_rows(rules, name)
    if isinstance(compared, str):
        return compared
    if compared.inserts or compared.outdated:
        return (
            "its expression-filter skips inserts or updates, and an UPDATE of a skipped row has no effect in the "
            "target: the target's rows depend on their history"
        )
    own = own_rows(rules, name, others, sources)
    if own is None:
        return "the target's table also has rows of other source tables, and no extracted column identifies them"
    return SinkTable(name, rules.route(*name).name, compared, own)
