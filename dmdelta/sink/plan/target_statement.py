"""A statement for the target, and what it is planned from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dmdelta.changelog.statement_filters import filter_action, kept_by_filters
from dmdelta.ddl.parse.event_types import ddl_events
from dmdelta.ddl.parse.rewriting import Names
from dmdelta.errors import SchemaError
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.rules import Action, SourceRules


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
        structure: a source table's structure before the statement; None if unknown.
    """

    rules: SourceRules
    earlier: Callable[[TableName], Sequence[str]]
    tables: Callable[[str], Sequence[TableName]]
    tidb: bool = False
    structure: Callable[[TableName], TableSchema | None] = lambda _: None

    def names(self, default_schema: str) -> Names:
        """The names at the target."""
        return Names(
            default_schema,
            lambda name: self.rules.route(*name).name,
            lambda database: self.rules.route(database, "").schema,
        )


def followed(sql: str, name: TableName, context: StatementContext) -> str:
    """The statement on a table without the actions that filters ignore; '' if nothing is left.

    Raises:
        SchemaError: the action of a filter is Error.
    """
    rules = context.rules
    if not rules.events.rules:
        return sql
    # Only the events of MODIFY and CHANGE depend on the structure, which is looked up in bronze.
    before = context.structure(name) if "modify column" in ddl_events(sql) else None
    kept = kept_by_filters(rules, name, sql, before) or sql
    return "" if is_ignored(filter_action(rules, name, kept, before), name) else kept


def is_ignored(action: Action, name: TableName) -> bool:
    """Whether the filters ignore a statement on a table.

    Raises:
        SchemaError: their action is Error.
    """
    if action is Action.ERROR:
        raise SchemaError(
            f"a filter of the spec stops a statement on {'.'.join(name)}",
            hint="correct the filter, or use dmdelta binlog skip",
        )
    return action is Action.IGNORE
