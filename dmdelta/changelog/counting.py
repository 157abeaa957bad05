"""Which row changes count: what the spec's filters leave out goes nowhere behind bronze."""

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
    """Those kinds of a table's changes that do not count. Rows that a snapshot read always do, as for DM.

    Raises:
        SchemaError: a filter says Error.
    """
    actions = rules.row_events(*name)
    stopping = [op for op in ops if op in ROW_EVENTS and actions[ROW_EVENTS[op]] is Action.ERROR]
    if stopping:
        raise SchemaError(
            f"{'.'.join(name)} has {stopping[0].value} events: a filter of the spec says Error", hint="mend the filter"
        )
    return [op for op in ROW_EVENTS if actions[ROW_EVENTS[op]] is Action.IGNORE]


def left_out_rows(rules: SourceRules, flavor: Flavor, schema: TableSchema, op: Op, *, partial: bool) -> str | None:
    """The condition (SQL) of rows that an expression filter leaves out; None if there is none.

    Args:
        partial: some images hold only some of the columns.

    Raises:
        SchemaError: the expression cannot be computed.
    """

    def side(image: str) -> Callable[[Column], str]:
        return lambda column: extracted(image, column)

    if op not in ROW_EVENTS:
        return None
    try:
        found = left_out(
            rules.expressions, schema, ROW_EVENTS[op], before=side("before"), after=side("after"), flavor=flavor
        )
    except ConfigError as error:
        raise SchemaError(error.message, hint=error.hint) from error
    if found is not None and partial:
        hint = "set binlog_row_image to FULL, and have the table read again"
        raise SchemaError(f"the expression filters of {schema} need whole row images", hint=hint)
    return found
