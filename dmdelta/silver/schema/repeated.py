"""Whether silver has followed a statement before, as a pure decision.

In safe mode silver can be ahead of the log: it then has the columns of later statements, too. Its history may show that
it is not (`silver/table/state.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dmdelta.ddl.tracking.effects import Altered
from dmdelta.errors import SchemaError
from dmdelta.lakehouse.changes import Change, Verb
from dmdelta.model.schema import TableSchema
from dmdelta.silver.schema.evolution import clustering


@dataclass(frozen=True, slots=True)
class Shapes:
    """Names and types of columns.

    Attributes:
        present: those of silver.
        before, after: those that the structures before and after a statement have in silver.
    """

    present: Mapping[str, str]
    before: Mapping[str, str]
    after: Mapping[str, str]


def was_followed(altered: Altered, shapes: Shapes, *, exact: bool) -> bool:
    """Whether silver has followed a statement before.

    Args:
        exact: silver follows every statement. Otherwise it may have columns that the source dropped.

    Raises:
        SchemaError: silver's columns do not show it.
    """
    has_all = shapes.after.items() <= shapes.present.items()
    has_dropped = any(name in shapes.present for name in shapes.before if name not in shapes.after)
    if not has_all or has_dropped:
        if _is_before(shapes, exact=exact):
            return False
        # A column that silver lacks, or has again, is that of a later statement.
        raise SchemaError("silver's columns do not show whether it was applied before")
    if altered.reused_name is not None:
        raise SchemaError(
            f"it reuses the name {altered.reused_name} for another column, and may have been applied before"
        )
    return True


def plan_again(changes: Sequence[Change], after: TableSchema) -> list[Change]:
    """The commits of a statement that silver has followed before which are made again.

    Older rows may lack values. A CREATE TABLE that was read again has clustered the table by its key.

    Args:
        changes: all commits of the statement.
        after: the table's structure after it in silver.
    """
    by_key = clustering(after)
    return [change for change in changes if change.verb in (Verb.UPDATE, Verb.DELETE) or change in by_key]


def _is_before(shapes: Shapes, *, exact: bool) -> bool:
    """Whether silver has the structure before the statement."""
    if exact:
        return shapes.present == shapes.before
    new = {name.lower() for name in shapes.after} - {name.lower() for name in shapes.before}
    lower = {name.lower() for name in shapes.present}
    return shapes.before.items() <= shapes.present.items() and not new & lower
