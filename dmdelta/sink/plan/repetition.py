"""Plans which parts of a statement are executed, and which of them an earlier run may have executed: pure."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from dmdelta.ddl.parse.actions import Doubt, renamed_column
from dmdelta.ddl.parse.defaults import altered_table
from dmdelta.errors import SinkError
from dmdelta.model.position import Position
from dmdelta.sink.plan.checkpoint import AboutTo
from dmdelta.sink.plan.target_statement import TargetStatement


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a statement that is to be executed.

    Attributes:
        about_to: what the checkpoint before it records.
        in_doubt: it may have been executed before.
    """

    statement: TargetStatement
    about_to: AboutTo
    in_doubt: bool


def plan_parts(
    planned: Sequence[TargetStatement], at: Position, earlier: AboutTo | None, *, loaded: bool
) -> list[Part]:
    """The parts of the statement at a position that have not been executed for certain.

    Args:
        earlier: what an earlier run was about to execute there. An operator override may have replaced the statement
            since: then every part may have been executed.
        loaded: a full load may have read the tables after the statement.
    """
    fingerprint = _fingerprint(planned)
    first, last = 0, -1
    if earlier is not None and earlier.position == at:
        is_same = earlier.fingerprint in (fingerprint, None)
        first, last = (earlier.part, earlier.part) if is_same else (0, len(planned))
    return [
        Part(one, AboutTo(at, number, fingerprint), loaded or number <= last)
        for number, one in enumerate(planned)
        if number >= first
    ]


def assert_repeatable(sql: str) -> None:
    """Check that a statement in doubt may be executed again: a second time it fails, or changes nothing.

    Raises:
        SinkError: it would undo what the first time has done.
    """
    _, actions = altered_table(sql, "") or (None, ())
    names = [one for action in actions if (one := renamed_column(action)) is not None]
    swaps = bool(names) and {was for was, _ in names} <= {name for _, name in names}
    exchanges = any(isinstance(action, Doubt) and action.other is not None and action.gains for action in actions)
    if swaps or exchanges:
        raise SinkError(
            f"the target may have executed a statement that a second execution would undo: {sql[:200]}",
            hint="compare the table with the source's. If the target has not executed the statement, execute it there. "
            "Then skip it: dmdelta binlog skip",
        )


def _fingerprint(planned: Sequence[TargetStatement]) -> str:
    """Tells statements apart; 16 characters."""
    return hashlib.sha256("\0".join(one.sql for one in planned).encode()).hexdigest()[:16]
