"""A statement for the target, and what it is planned from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dmdelta.ddl.parse.rewriting import Names
from dmdelta.errors import SchemaError
from dmdelta.model.schema import TableName
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
    """

    rules: SourceRules
    earlier: Callable[[TableName], Sequence[str]]
    tables: Callable[[str], Sequence[TableName]]
    tidb: bool = False

    def names(self, default_schema: str) -> Names:
        """The names at the target."""
        return Names(
            default_schema,
            lambda name: self.rules.route(*name).name,
            lambda database: self.rules.route(database, "").schema,
        )


def decided(rules: SourceRules, name: TableName, events: Sequence[str] | frozenset[str], sql: str) -> Action:
    """The action of the filters, DO or IGNORE.

    Raises:
        SchemaError: the action is Error.
    """
    action = rules.decide(name, list(events), sql)
    if action is Action.ERROR:
        raise SchemaError(
            f"a filter of the spec stops a statement on {'.'.join(name)}",
            hint="correct the filter, or use dmdelta binlog skip",
        )
    return action
