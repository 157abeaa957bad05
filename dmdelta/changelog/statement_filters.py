"""What the filters of a spec leave of a statement: silver and the sink decide alike."""

from dmdelta.ddl.parse.event_types import ddl_events
from dmdelta.ddl.parse.splitting import split_alter
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.rules import Action, SourceRules


def filter_action(rules: SourceRules, table: TableName, sql: str, before: TableSchema | None) -> Action:
    """The action for a statement as a whole.

    Args:
        before: the table's structure before the statement; None if unknown.
    """
    return rules.decide(table, ddl_events(sql, before), sql)


def kept_by_filters(rules: SourceRules, table: TableName, sql: str, before: TableSchema | None) -> str | None:
    """The rest of an ALTER TABLE if filters ignore some of its actions, but not all; else None.

    Args:
        before: as for `filter_action`.
    """
    statement = split_alter(sql) if rules.events.rules else None
    if statement is None:
        return None
    alone = {action: statement.of([action]) for action in statement.actions}
    kept = [
        action for action, single in alone.items() if filter_action(rules, table, single, before) is not Action.IGNORE
    ]
    rest = statement.of(kept) if kept and len(kept) < len(alone) else ""
    return rest if ddl_events(rest) else None  # ALGORITHM and LOCK alone change nothing
