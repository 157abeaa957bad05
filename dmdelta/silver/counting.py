"""Which row changes of a range count: what the spec's filters leave out never reaches silver."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from dmdelta.errors import ConfigError, SchemaError
from dmdelta.model.change import Op
from dmdelta.model.events import RowEvent
from dmdelta.model.schema import Column, TableSchema
from dmdelta.rules import Action
from dmdelta.rules.expression_filter import left_out
from dmdelta.silver.extraction import extracted
from dmdelta.silver.request import ApplyRequest
from dmdelta.silver.survey import TableEvents

_EVENTS: Mapping[Op, RowEvent] = {Op.INSERT: "insert", Op.UPDATE: "update", Op.DELETE: "delete"}


def plan_counting(request: ApplyRequest, schema: TableSchema, events: TableEvents) -> tuple[TableEvents, str]:
    """The events of a range without those of kinds that do not count, and a condition (SQL) for the rows that do.

    The condition is '' if all rows do. Rows that a snapshot read always count, as they do for DM.

    Raises:
        SchemaError: a filter says Error, or an expression cannot be computed.
    """
    actions, wrong = request.rules.row_events(*request.name), f"{request.schema}.{request.table}"
    stopping = [op for op in events.rows if op in _EVENTS and actions[_EVENTS[op]] is Action.ERROR]
    if stopping:
        raise SchemaError(
            f"{wrong} has {stopping[0].value} events: a filter of the spec says Error", hint="mend the filter"
        )
    ignored = [op for op in _EVENTS if actions[_EVENTS[op]] is Action.IGNORE]
    rows = {op: count for op, count in events.rows.items() if op not in ignored}
    parts = [f"op <> '{op.value}'" for op in ignored if op in events.rows]
    for op in rows:
        expression = _expression(request, schema, _EVENTS[op]) if op in _EVENTS else None
        if expression is None:
            continue
        if events.partial:
            hint = "set binlog_row_image to FULL, and have the table read again"
            raise SchemaError(f"the expression filters of {wrong} need whole row images", hint=hint)
        parts.append(f"NOT (op = '{op.value}' AND ({expression}))")
    return replace(events, rows=rows), " AND ".join(parts)


def _expression(request: ApplyRequest, schema: TableSchema, event: RowEvent) -> str | None:
    def side(image: str) -> Callable[[Column], str]:
        return lambda column: extracted(image, column)

    try:
        return left_out(
            request.rules.expressions, schema, event, before=side("before"), after=side("after"), flavor=request.flavor
        )
    except ConfigError as error:
        raise SchemaError(error.message, hint=error.hint) from error
