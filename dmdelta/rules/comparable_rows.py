"""Which rows of a filtered table can be compared with the source, determined from their current values.

A filter decides about events, not about rows: a row that was inserted unseen appears with its next update, one whose
update was left out stays as it was. So a table's state is not the source's with a WHERE. But a row's present values
tell whether the event that made it what it is could have been left out: if not, the row is there as the source has it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dmdelta.model.schema import TableName
from dmdelta.rules.filters import Action
from dmdelta.rules.source_rules import SourceRules

if TYPE_CHECKING:
    from dmdelta.config.expression_filter import ExpressionFilterRule


@dataclass(frozen=True, slots=True)
class ComparableRows:
    """The rows of a filtered table that are compared: those for which no expression is true.

    Attributes:
        expressions: MySQL's SQL, of the rule's inserts, updates (after) and deletes; none: all rows are compared.
        outdated: a row whose update was left out may stay behind: where the update changed its key, and where its
            delete is left out, too.
        deletes: some deletes are left out.
        inserts: some inserts are left out, so that a plain UPDATE of such a row finds none.
    """

    expressions: tuple[str, ...] = ()
    outdated: bool = False
    deletes: bool = False
    inserts: bool = False

    @property
    def source_condition(self) -> str:
        """The condition (MySQL's SQL) of the rows that are not compared; '' if there are none. Never NULL."""
        # A comment in an expression would swallow the rest of its line.
        return " OR ".join(f"(({expression}\n) IS TRUE)" for expression in self.expressions)


ALL_ROWS = ComparableRows()
"""Of a table that no filter is about."""


def plan_comparable_rows(rules: SourceRules, name: TableName) -> ComparableRows | str:
    """Which rows of a table are compared, or why none are."""
    ignored = [event for event, action in rules.row_events(*name).items() if action is Action.IGNORE]
    if rules.decide(name, ("truncate table",), "TRUNCATE TABLE") is Action.IGNORE:
        ignored.append("truncate table")  # type: ignore[arg-type]
    if ignored:
        return f"a filter of the spec ignores its events: {', '.join(ignored)}"
    own = [rule for rule in rules.expressions if _is_about(rule, name)]
    if any(rule.update_old_value_expr is not None and rule.update_new_value_expr is None for rule in own):
        return (
            "its expression-filter leaves updates out by the row before them alone (update-old-value-expr): which rows "
            "are up to date depends on their history"
        )
    sides = [
        [rule.insert_value_expr for rule in own],
        [rule.update_new_value_expr for rule in own],
        [rule.delete_value_expr for rule in own],
    ]
    inserts, updates, deletes = ([text for text in side if text is not None] for side in sides)
    return ComparableRows(
        tuple(dict.fromkeys([*inserts, *updates, *deletes])), bool(updates), bool(deletes), bool(inserts)
    )


def _is_about(rule: "ExpressionFilterRule", name: TableName) -> bool:
    return (rule.schema_.lower(), rule.table.lower()) == (name[0].lower(), name[1].lower())
