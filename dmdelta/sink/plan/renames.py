"""Plans what a renamed table means at the target: the same for RENAME TABLE and for a RENAME in an ALTER TABLE."""

from collections.abc import Sequence

from dmdelta.ddl.parse.rewriting import Names, rewritten
from dmdelta.ddl.parse.statements import statement_targets
from dmdelta.errors import SchemaError
from dmdelta.model.mysql_sql import quoted_name
from dmdelta.model.schema import TableName
from dmdelta.rules import Role, SourceRules
from dmdelta.sink.plan.target_statement import StatementContext, TargetStatement, is_ignored

Pair = tuple[TableName, TableName]
"""The old and the new name of a table."""


def plan_renames(pairs: Sequence[Pair], sql: str, context: StatementContext) -> list[TargetStatement]:
    """The statements for the tables that one statement renames. A table that is renamed at the target has `renamed`.

    Raises:
        SchemaError: the patterns of `online-ddl` do not fit, a table comes from outside the task, or a filter stops it.
    """
    _assert_online(pairs, sql, context.rules)
    return [one for pair in pairs for one in _renamed(pair, sql, context)]


def _assert_online(pairs: Sequence[Pair], sql: str, rules: SourceRules) -> None:
    """Check that the patterns of `online-ddl` fit a statement that renames tables of the task."""
    reason = rules.online.misfit(pairs)
    tables = [to for was, to in pairs if rules.online.role(*was) is Role.SHADOW and rules.wanted(*to)]
    if reason and not all(_ignores(rules, table, sql) for table in tables):
        raise SchemaError(
            f"a statement ends an online DDL of {'.'.join(tables[0])}: {reason}",
            hint="correct the patterns in the spec, or override the statement: dmdelta binlog skip, replace",
        )


def _renamed(pair: Pair, sql: str, context: StatementContext) -> list[TargetStatement]:
    was, to = pair
    rules, online = context.rules, context.rules.online
    if online.role(*to) is Role.TRASH or online.role(*was) is Role.TRASH:
        return []
    standing = online.standing(*was)
    if standing.role is Role.SHADOW:
        wanted = to == standing.real and rules.wanted(*to)
        return _cut_over(was, to, context) if wanted and not _ignores(rules, to, sql) else []
    if not rules.wanted(*was):
        if not rules.wanted(*to) or _ignores(rules, to, sql):
            return []
        raise SchemaError(
            f"the table {'.'.join(to)} is renamed from one outside the task: {'.'.join(was)}",
            hint="copy the table to the target manually, then skip the statement: dmdelta binlog skip",
        )
    if _ignores(rules, was, sql):
        return []
    old, new = rules.route(*was), rules.route(*to)
    if old.merged or new.merged:
        return []
    text = f"RENAME TABLE {quoted_name(*old.name)} TO {quoted_name(*new.name)}"
    return [TargetStatement(text, old.name, renamed=new.name)]


def _ignores(rules: SourceRules, name: TableName, sql: str) -> bool:
    return is_ignored(rules.decide(name, ("rename table",), sql), name)


def _cut_over(shadow: TableName, real: TableName, context: StatementContext) -> list[TargetStatement]:
    """The statements on the shadow table since its creation, for the real table."""
    done: list[str] = []
    for sql in context.earlier(shadow):
        targets = statement_targets(sql, shadow[0])
        ops = {target.op for target in targets if (target.schema, target.table) == shadow}
        renames = any(target.op == "rename_table" for target in targets)
        if ops & {"create_table", "drop_table"}:
            done = []
        elif ops & {"alter_table", "create_index", "drop_index"} and not renames:
            done.append(sql)
    route = context.rules.route(*real)

    def table(name: TableName) -> TableName:
        return route.name if name == shadow else context.rules.route(*name).name

    names = Names(shadow[0], table, lambda database: database)
    return [TargetStatement(rewritten(sql, names), route.name, route.merged) for sql in done]
