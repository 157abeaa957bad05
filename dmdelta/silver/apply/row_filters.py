"""Row filters: row changes that the spec's filters exclude are not applied to silver."""

from dataclasses import replace

from dmdelta.changelog.row_filters import ignored_ops, left_out_rows
from dmdelta.model.schema import TableSchema
from dmdelta.rules import Action
from dmdelta.rules.comparable_rows import plan_comparable_rows
from dmdelta.silver.apply.request import ApplyRequest
from dmdelta.silver.schema.range_profile import TableEvents


def plan_counting(request: ApplyRequest, schema: TableSchema, events: TableEvents) -> tuple[TableEvents, str]:
    """The events of a range without the excluded ops, and a condition (SQL) that selects the remaining rows.

    The condition is '' if it selects all rows.

    Raises:
        SchemaError: a filter has the action Error, or an expression cannot be evaluated.
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
    """An inserted key may exist in silver: a filter may have excluded the change that removed it."""
    compared = plan_comparable_rows(request.context.rules, request.name)
    if isinstance(compared, str) or compared.outdated or compared.deletes:
        return True
    return request.context.rules.decide(request.name, ("drop table",), "DROP TABLE") is Action.IGNORE
