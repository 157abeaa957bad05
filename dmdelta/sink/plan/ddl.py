"""Plans the statements of the target for a statement of the log: a pure function."""

from dataclasses import replace

from dmdelta.ddl.parse.rewriting import rewritten
from dmdelta.ddl.parse.splitting import alter_rename
from dmdelta.ddl.parse.statements import StatementTarget, renamed_tables, statement_targets
from dmdelta.errors import SchemaError
from dmdelta.model.mysql_sql import quoted_name
from dmdelta.model.schema import TableName
from dmdelta.rules import Role
from dmdelta.sink.plan.renames import plan_renames
from dmdelta.sink.plan.target_statement import StatementContext, TargetStatement, followed
from dmdelta.sink.plan.tidb import tidb_statements

ALREADY = frozenset({1007, 1008, 1050, 1051, 1060, 1061, 1068, 1091, 1826, 3822})
"""The target already has what the statement creates, or lacks what it drops. As in DM, that is no error; the other
actions of an ALTER TABLE are executed (`single_actions.py`)."""
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
        wanted = [name for name in map(_name, targets) if context.rules.wanted(*name) and followed(sql, name, context)]
        planned = [one for name in wanted for one in _dropped(name, context)]
    elif targets[0].op == "rename_table":
        planned = plan_renames(renamed_tables(sql, default_schema), sql, context)
    elif targets[0].op == "alter_table":
        planned = _altered(sql, default_schema, targets[0], context)
    else:
        planned = _on_table(sql, default_schema, targets[0], context)
    return [part for one in planned for part in _for_tidb(one)] if context.tidb else planned


def _database(
    sql: str, default_schema: str, target: StatementTarget, context: StatementContext
) -> list[TargetStatement]:
    if not context.rules.allow_list.wanted(target.schema, None) or not followed(sql, (target.schema, ""), context):
        return []
    if target.op == "drop_database" and context.rules.shares_database(target.schema):
        tables = [name for name in context.tables(target.schema) if context.rules.wanted(*name)]
        return [one for name in tables for one in _dropped(name, context)]
    return [TargetStatement(rewritten(sql, context.names(default_schema)), None)]


def _on_table(
    sql: str, default_schema: str, target: StatementTarget, context: StatementContext
) -> list[TargetStatement]:
    name = _name(target)
    text = followed(sql, name, context) if context.rules.wanted(*name) else ""
    return _executed(text, default_schema, target, context) if text else []


def _executed(
    sql: str, default_schema: str, target: StatementTarget, context: StatementContext
) -> list[TargetStatement]:
    """A statement on a table of the task, as the target executes it."""
    route = context.rules.route(*_name(target))
    creates = target.op == "create_table"
    if route.merged and target.op == "truncate_table":
        return []  # the other shards' rows stay, as in DM
    text = rewritten(sql, context.names(default_schema))
    needs = None if creates else route.name
    return [TargetStatement(text, needs, route.merged, route.schema if creates else None)]


def _altered(
    sql: str, default_schema: str, target: StatementTarget, context: StatementContext
) -> list[TargetStatement]:
    """An ALTER TABLE. A RENAME among its actions means what RENAME TABLE means."""
    was = _name(target)
    wanted = context.rules.wanted(*was)
    sql = followed(sql, was, context) if wanted else sql
    if not sql:
        return []
    _assert_inside(sql, default_schema, context)
    rename = alter_rename(sql, default_schema)
    if rename is None:
        return _executed(sql, default_schema, target, context) if wanted else []
    # What a cut-over does to the shadow table besides renaming it is the last change of the real table.
    own = replace(context, earlier=lambda name: [*context.earlier(name), *([rename.rest] if rename.rest else [])])
    renamed = plan_renames([(was, rename.to)], sql, own)
    if any(one.renamed is not None for one in renamed):
        # The target renames it, too: one statement is executed as a whole, or not at all.
        return [replace(one, sql=rewritten(sql, context.names(default_schema))) for one in renamed]
    if rename.rest is None and (renamed or wanted):
        raise SchemaError(
            f"a statement renames the table {'.'.join(was)} and has actions that cannot be executed without that",
            hint="use dmdelta binlog replace with one statement that renames the table and one with the other actions",
        )
    return [*(_executed(rename.rest, default_schema, target, context) if wanted and rename.rest else ()), *renamed]


def _assert_inside(sql: str, default_schema: str, context: StatementContext) -> None:
    """Check that an ALTER TABLE moves no rows, and no table, into the task or between the task and other tables.

    Args:
        sql: what the filters of the altered table leave of it.
    """
    altered, *others = statement_targets(sql, default_schema)
    first, rules = _name(altered), context.rules
    if rules.online.role(*first) is not Role.REAL:
        return
    inside = rules.wanted(*first)
    for target in others:
        other = _name(target)
        if rules.wanted(*other) is inside or (inside and target.op == "rename_table"):
            continue
        if not inside and not _mentions(followed(sql, other, context), default_schema, other):
            continue
        inner, outer = (first, other) if inside else (other, first)
        raise SchemaError(
            f"a statement moves rows between {'.'.join(inner)} and {'.'.join(outer)}, which is outside the task",
            hint="copy the rows to the target manually, then skip the statement: dmdelta binlog skip",
        )


def _mentions(sql: str, default_schema: str, table: TableName) -> bool:
    return table in map(_name, statement_targets(sql, default_schema))


def _name(target: StatementTarget) -> TableName:
    return (target.schema, target.table or "")


def _dropped(name: TableName, context: StatementContext) -> list[TargetStatement]:
    route = context.rules.route(*name)
    if route.merged:
        return []
    return [TargetStatement(f"DROP TABLE IF EXISTS {quoted_name(*route.name)}", route.name)]


def _for_tidb(one: TargetStatement) -> list[TargetStatement]:
    """A statement as TiDB supports it; the last part renames the table."""
    parts = tidb_statements(one.sql)
    return [replace(one, sql=part, renamed=one.renamed if part is parts[-1] else None) for part in parts]
