"""Plans the statements of the target for a statement of the log: a pure function."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dmdelta.ddl.parse.event_types import ddl_events
from dmdelta.ddl.parse.rewriting import Names, rewritten
from dmdelta.ddl.parse.statements import StatementTarget, statement_cursor, statement_targets
from dmdelta.ddl.tokens import Cursor, split_at_commas
from dmdelta.errors import SchemaError
from dmdelta.model.mysql_sql import quoted_name
from dmdelta.model.schema import TableName
from dmdelta.rules import Action, Role, SourceRules
from dmdelta.sink.plan.tidb import tidb_statements

ALREADY = frozenset({1007, 1008, 1050, 1051, 1060, 1061, 1068, 1091, 1826, 3822})
"""The target already is in the state that the statement creates: no error, as in DM."""
IN_DOUBT = ALREADY | {1049, 1054, 1146, 1176}
"""The same for a statement that may have been executed before a crash."""

STRANGE = frozenset({1064, 1067, 1115, 1146, 1235, 1273, 3106, 3770, 8200})
"""For CREATE TABLE: the target does not support its syntax, a default, a character set, a collation or an option, or
lacks the table of its LIKE clause."""


@dataclass(frozen=True, slots=True)
class TargetStatement:
    """
    Attributes:
        needs: the target's table that must exist, None if none must: without it the statement is skipped, and a
            missing table is created with its first row.
        merged: several source tables are merged into it, each with the same statement.
        within: the database that must exist for a table to be created, None for other statements.
        renamed: the new name that `needs` gets; None: it keeps its name.
    """

    sql: str
    needs: TableName | None
    merged: bool = False
    within: str | None = None
    renamed: TableName | None = None


@dataclass(frozen=True, slots=True)
class StatementContext:
    """
    Attributes:
        earlier: the statements on a shadow table before this one.
        tables: the tables that a schema has or had.
        tidb: the target is TiDB.
    """

    rules: SourceRules
    earlier: Callable[[TableName], Sequence[str]]
    tables: Callable[[str], Sequence[TableName]]
    tidb: bool = False


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
    elif _is_rename(sql):
        pairs = _pairs(sql, default_schema)
        _assert_online(pairs, sql, context.rules)
        planned = [one for pair in pairs for one in _renamed(pair, sql, context)]
    else:
        _assert_inside(sql, targets, context)
        planned = _on_table(sql, default_schema, targets[0], context)
    if not context.tidb:
        return planned
    return [replace(one, sql=part) for one in planned for part in tidb_statements(one.sql)]


def _database(
    sql: str, default_schema: str, target: StatementTarget, context: StatementContext
) -> list[TargetStatement]:
    events = ddl_events(sql, None)
    if not context.rules.allow_list.wanted(target.schema, None):
        return []
    if _decided(context.rules, (target.schema, ""), events, sql) is Action.IGNORE:
        return []
    if target.op == "drop_database" and context.rules.shares_database(target.schema):
        tables = [name for name in context.tables(target.schema) if context.rules.wanted(*name)]
        return [one for name in tables for one in _dropped(name, context)]
    return [TargetStatement(rewritten(sql, _names(context.rules, default_schema)), None)]


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
    text = rewritten(sql, _names(context.rules, default_schema))
    needs = None if creates else route.name
    return [TargetStatement(text, needs, route.merged, route.schema if creates else None)]


def _assert_inside(sql: str, targets: Sequence[StatementTarget], context: StatementContext) -> None:
    """Check that an ALTER TABLE moves no rows, and no table, into the task or between the task and other tables."""
    first, rules = (targets[0].schema, targets[0].table or ""), context.rules
    if rules.online.role(*first) is not Role.REAL:
        return
    for target in targets[1:]:
        other, inside = (target.schema, target.table or ""), rules.wanted(*first)
        if rules.wanted(*other) is inside or (inside and target.op == "rename_table"):
            continue
        if _decided(rules, first if inside else other, ddl_events(sql, None), sql) is Action.IGNORE:
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


def _assert_online(pairs: Sequence[tuple[TableName, TableName]], sql: str, rules: SourceRules) -> None:
    """Check that the patterns of `online-ddl` fit a statement that renames tables of the task."""
    reason = rules.online.misfit(pairs)
    tables = [to for was, to in pairs if rules.online.role(*was) is Role.SHADOW and rules.wanted(*to)]
    if reason and any(_decided(rules, table, ("rename table",), sql) is not Action.IGNORE for table in tables):
        raise SchemaError(
            f"a statement ends an online DDL of {'.'.join(tables[0])}: {reason}",
            hint="correct the patterns in the spec, or override the statement: dmdelta binlog skip, replace",
        )


def _renamed(pair: tuple[TableName, TableName], sql: str, context: StatementContext) -> list[TargetStatement]:
    was, to = pair
    rules, online = context.rules, context.rules.online
    if online.role(*to) is Role.TRASH or online.role(*was) is Role.TRASH:
        return []
    standing = online.standing(*was)
    if standing.role is Role.SHADOW:
        return _cut_over(was, to, context) if to == standing.real and rules.wanted(*to) else []
    if not rules.wanted(*was):
        if not rules.wanted(*to):
            return []
        raise SchemaError(
            f"the table {'.'.join(to)} is renamed from one outside the task: {'.'.join(was)}",
            hint="copy the table to the target manually, then skip the statement: dmdelta binlog skip",
        )
    if _decided(rules, was, ("rename table",), sql) is Action.IGNORE:
        return []
    old, new = rules.route(*was), rules.route(*to)
    if old.merged or new.merged:
        return []
    text = f"RENAME TABLE {quoted_name(*old.name)} TO {quoted_name(*new.name)}"
    return [TargetStatement(text, old.name, renamed=new.name)]


def _cut_over(shadow: TableName, real: TableName, context: StatementContext) -> list[TargetStatement]:
    """The statements on the shadow table since its creation, for the real table."""
    done: list[str] = []
    for sql in context.earlier(shadow):
        ops = {target.op for target in statement_targets(sql, shadow[0]) if (target.schema, target.table) == shadow}
        if ops & {"create_table", "drop_table"}:
            done = []
        elif ops & {"alter_table", "create_index", "drop_index"} and not ops & {"rename_table"}:
            done.append(sql)
    route = context.rules.route(*real)

    def table(name: TableName) -> TableName:
        return route.name if name == shadow else context.rules.route(*name).name

    names = Names(shadow[0], table, lambda database: database)
    return [TargetStatement(rewritten(sql, names), route.name, route.merged) for sql in done]


def _counts(target: StatementTarget, sql: str, context: StatementContext) -> bool:
    name = (target.schema, target.table or "")
    if not context.rules.wanted(*name):
        return False
    return _decided(context.rules, name, ddl_events(sql, None), sql) is Action.DO


def _decided(rules: SourceRules, name: TableName, events: Sequence[str] | frozenset[str], sql: str) -> Action:
    action = rules.decide(name, list(events), sql)
    if action is Action.ERROR:
        raise SchemaError(
            f"a filter of the spec stops a statement on {'.'.join(name)}",
            hint="correct the filter, or use dmdelta binlog skip",
        )
    return action


def _names(rules: SourceRules, default_schema: str) -> Names:
    return Names(
        default_schema,
        lambda name: rules.route(*name).name,
        lambda database: rules.route(database, "").schema,
    )


def _is_rename(sql: str) -> bool:
    return statement_cursor(sql).accept("RENAME")


def _pairs(sql: str, default_schema: str) -> list[tuple[TableName, TableName]]:
    cursor = statement_cursor(sql)
    cursor.accept("RENAME")
    cursor.accept_any("TABLE", "TABLES")
    cursor.accept("IF", "EXISTS")
    pairs: list[tuple[TableName, TableName]] = []
    for part in split_at_commas(cursor.rest()):
        pair = Cursor(part)
        was = pair.table_name(default_schema)
        while not pair.ended and not pair.accept("TO"):
            pair.take()
        to = pair.table_name(default_schema)
        if was is not None and to is not None:
            pairs.append((was, to))
    return pairs
