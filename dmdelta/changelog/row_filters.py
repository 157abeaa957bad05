"""Row filters: changes that the spec filters out are not replicated beyond bronze."""

from collections.abc import Callable, Collection, Mapping

from dmdelta.changelog.extraction import extracted
from dmdelta.errors import ConfigError, SchemaError
from dmdelta.model.change import Op
from dmdelta.model.events import RowEvent
from dmdelta.model.gtid import Flavor
from dmdelta.model.schema import Column, TableName, TableSchema
from dmdelta.rules import Action, SourceRules
from dmdelta.rules.expression_filter import left_out

ROW_EVENTS: Mapping[Op, RowEvent] = {Op.INSERT: "insert", Op.UPDATE: "update", Op.DELETE: "delete"}


def ignored_ops(rules: SourceRules, name: TableName, ops: Collection[Op]) -> list[Op]:
    """The kinds of a table's changes that are ignored. Rows read by a snapshot are never ignored, as in DM.

    Raises:
        SchemaError: a filter has the action Error.
    """
    actions = rules.row_events(*name)
    stopping = [op for op in ops if op in ROW_EVENTS and actions[ROW_EVENTS[op]] is Action.ERROR]
    if stopping:
        raise SchemaError(
            f"{'.'.join(name)} has {stopping[0].value} events, for which a filter has the action Error",
            hint="change the filter in the spec",
        )
    return [op for op in ROW_EVENTS if actions[ROW_EVENTS[op]] is Action.IGNORE]


def left_out_rows(rules: SourceRules, flavor: Flavor, schema: TableSchema, op: Op, *, partial: bool) -> str | None:
    """The condition (SQL) for rows that an expression filter excludes; None if there is no filter.

    Args:
        partial: some images contain only some of the columns.

    Raises:
        SchemaError: the expression cannot be evaluated.
    """

    def side(image: str) -> Callable[[Column], str]:
        return lambda column: extracted(image, column)

    if op not in ROW_EVENTS:
        return None
    try:
        condition = left_out(
            rules.expressions, schema, ROW_EVENTS[op], before=side("before"), after=side("after"), flavor=flavor
        )
    except ConfigError as error:
        raise SchemaError(error.message, hint=error.hint) from error
    if condition is not None and partial:
        hint = "set binlog_row_image to FULL, and reload the table"
        raise SchemaError(f"the expression filters of {schema} require full row images", hint=hint)
    return condition
