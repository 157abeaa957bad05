"""Plans the statements of the target for a statement of the log: a pure function."""

from collections.abc import Sequence
from dataclasses import replace

from dmdelta.ddl.parse.event_types import ddl_events
from dmdelta.ddl.parse.rewriting import rewritten
from dmdelta.ddl.parse.splitting import alter_rename
from dmdelta.ddl.parse.statements import StatementTarget, statement_targets
from dmdelta.errors import SchemaError
from dmdelta.model.mysql_sql import quoted_name
from dmdelta.model.schema import TableName
from dmdelta.rules import Action, Role
from dmdelta.sink.plan.renames import plan_renames, renamed_pairs, renames_tables
from dmdelta.sink.plan.target_statement import StatementContext, TargetStatement, decided
from dmdelta.sink.plan.tidb import tidb_statements

ALREADY = frozenset({1007, 1008, 1050, 1051, 1060, 1061, 1068, 1091, 1826, 3822})
"""The target already is in the state that the statement creates: no error, as in DM."""
IN_DOUBT = ALREADY | {1049, 1054, 1146, 1176}
"""The same for a statement that may have been executed before a crash."""

STRANGE = frozenset({1064, 1067, 1115, 1146, 1235, 1273, 3106, 3770, 8200})
"""For CREATE TABLE: the target does not support its syntax, a default, a character set, a collation or an option, or
lacks the table of its LIKE clause."""


def plan_statement(sql: str, default_schema: str, context: StatementContext) -> list[TargetStatement]:
    """The statements to execute, in order; empty if none of the tables is selected.

    Raises:
        SchemaError: a filter says Error, a table comes from outside the task, or TiDB does not support the statement.
        ConfigError: two routes match a table.
    """
    targets = statement_targets(sql, default_schema)
    if not targets:
        return []
    if targets[0].table is None:
        planned = _database(sql, default_schema, targets[0], context)
    elif targets[0].op == "drop_table":
        tables = [(target.schema, target.table or "") for target in targets if _counts(target, sql, context)]
        planned = [one for name in tables for one in _dropped(name, context)]
    elif renames_tables(sql):
        planned = plan_renames(renamed_pairs(sql, default_schema), sql, context)
    elif targets[0].op == "alter_table":
        planned = _altered(sql, default_schema, targets, context)
    else:
        planned = _on_table(sql, default_schema, targets[0], context)
    return [part for one in planned for part in _for_tidb(one)] if context.tidb else planned


def _database(
    sql: str, default_schema: str, target: StatementTarget, context: StatementContext
) -> list[TargetStatement]:
    events = ddl_events(sql, None)
    if not context.rules.allow_list.wanted(target.schema, None):
        return []
    if decided(context.rules, (target.schema, ""), events, sql) is Action.IGNORE:
        return []
    if target.op == "drop_database" and context.rules.shares_database(target.schema):
        tables = [name for name in context.tables(target.schema) if context.rules.wanted(*name)]
        return [one for name in tables for one in _dropped(name, context)]
    return [TargetStatement(rewritten(sql, context.names(default_schema)), None)]


def _on_table(
    sql: str, default_schema: str, target: StatementTarget, context: StatementContext
) -> list[TargetStatement]:
    if not _counts(target, sql, context):
        return []
    assert target.table is not None
    route = context.rules.route(target.schema, target.table)
    creates = target.op == "create_table"
    if route.merged and target.op == "truncate_table":
        return []  # the other shards' rows stay, as in DM
    text = rewritten(sql, context.names(default_schema))
    needs = None if creates else route.name
    return [TargetStatement(text, needs, route.merged, route.schema if creates else None)]


def _altered(
    sql: str, default_schema: str, targets: Sequence[StatementTarget], context: StatementContext
) -> list[TargetStatement]:
    """An ALTER TABLE. A RENAME among its actions means what RENAME TABLE means."""
    _assert_inside(sql, targets, context)
    rename, rules = alter_rename(sql, default_schema), context.rules
    if rename is None:
        return _on_table(sql, default_schema, targets[0], context)
    was = (targets[0].schema, targets[0].table or "")
    if rules.wanted(*was) and not _counts(targets[0], sql, context):
        return []
    # What a cut-over does to the shadow table besides renaming it is the last change of the real table.
    own = replace(context, earlier=lambda name: [*context.earlier(name), *([rename.rest] if rename.rest else [])])
    renamed = plan_renames([(was, rename.to)], sql, own)
    if any(one.renamed is not None for one in renamed):
        # The target renames it, too: one statement is executed as a whole, or not at all.
        return [replace(one, sql=rewritten(sql, context.names(default_schema))) for one in renamed]
    if rename.rest is None and (renamed or rules.wanted(*was)):
        raise SchemaError(
            f"a statement renames the table {'.'.join(was)} and has actions that cannot be executed without that",
            hint="use dmdelta binlog replace with one statement that renames the table and one with the other actions",
        )
    rest = _on_table(rename.rest, default_schema, targets[0], context) if rename.rest else []
    return [*rest, *renamed]


def _assert_inside(sql: str, targets: Sequence[StatementTarget], context: StatementContext) -> None:
    """Check that an ALTER TABLE moves no rows, and no table, into the task or between the task and other tables."""
    first, rules = (targets[0].schema, targets[0].table or ""), context.rules
    if rules.online.role(*first) is not Role.REAL:
        return
    for target in targets[1:]:
        other, inside = (target.schema, target.table or ""), rules.wanted(*first)
        if rules.wanted(*other) is inside or (inside and target.op == "rename_table"):
            continue
        if decided(rules, first if inside else other, ddl_events(sql, None), sql) is Action.IGNORE:
            continue
        inner, outer = (first, other) if inside else (other, first)
        raise SchemaError(
            f"a statement moves rows between {'.'.join(inner)} and {'.'.join(outer)}, which is outside the task",
            hint="copy the rows to the target manually, then skip the statement: dmdelta binlog skip",
        )


def _dropped(name: TableName, context: StatementContext) -> list[TargetStatement]:
    route = context.rules.route(*name)
    if route.merged:
        return []
    return [TargetStatement(f"DROP TABLE IF EXISTS {quoted_name(*route.name)}", route.name)]


def _counts(target: StatementTarget, sql: str, context: StatementContext) -> bool:
    name = (target.schema, target.table or "")
    if not context.rules.wanted(*name):
        return False
    return decided(context.rules, name, ddl_events(sql, None), sql) is Action.DO


def _for_tidb(one: TargetStatement) -> list[TargetStatement]:
    """A statement as TiDB supports it; the last part renames the table."""
    parts = tidb_statements(one.sql)
    return [replace(one, sql=part, renamed=one.renamed if part is parts[-1] else None) for part in parts]
