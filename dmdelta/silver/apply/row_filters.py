"""Which row changes of a range count: what the spec's filters leave out never reaches silver."""

from dataclasses import replace

from dmdelta.changelog.row_filters import ignored_ops, left_out_rows
from dmdelta.model.schema import TableSchema
from dmdelta.rules import Action
from dmdelta.rules.comparable_rows import plan_comparable_rows
from dmdelta.silver.apply.request import ApplyRequest
from dmdelta.silver.schema.range_profile import TableEvents


def plan_counting(request: ApplyRequest, schema: TableSchema, events: TableEvents) -> tuple[TableEvents, str]:
    """The events of a range without those of kinds that do not count, and a condition (SQL) for the rows that do.

    The condition is '' if all rows do.

    Raises:
        SchemaError: a filter says Error, or an expression cannot be computed.
    """
    ignored = ignored_ops(request.context.rules, request.name, events.rows)
    rows = {op: count for op, count in events.rows.items() if op not in ignored}
    parts = [f"op <> '{op.value}'" for op in ignored if op in events.rows]
    for op in rows:
        context = request.context
        expression = left_out_rows(context.rules, context.flavor, schema, op, partial=bool(events.partial))
        if expression is not None:
            parts.append(f"NOT (op = '{op.value}' AND ({expression}))")
    return replace(events, rows=rows), " AND ".join(parts)


def may_repeat(request: ApplyRequest) -> bool:
    """A key that is inserted may be in silver: what took it away, or another key from it, was left out."""
    compared = plan_comparable_rows(request.context.rules, request.name)
    if isinstance(compared, str) or compared.outdated or compared.deletes:
        return True
    return request.context.rules.decide(request.name, ("drop table",), "DROP TABLE") is Action.IGNORE
