"""What a DDL statement means for a silver table: new columns, nothing, or more than silver can follow."""

from dataclasses import dataclass, replace

from dmdelta.ddl.alter import Action, ActionKind, alter_actions
from dmdelta.ddl.columns import AddedColumn, Definition, same_values
from dmdelta.ddl.statements import statement_targets
from dmdelta.ddl.types import silver_type
from dmdelta.errors import SchemaError
from dmdelta.model.schema import Column, TableSchema


@dataclass(frozen=True, slots=True)
class AddColumns:
    """New columns, and the structure after them."""

    columns: tuple[AddedColumn, ...]
    schema: TableSchema


@dataclass(frozen=True, slots=True)
class NoChange:
    """Nothing that silver shows changes."""

    schema: TableSchema | None


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Silver cannot follow: why."""

    reason: str


Evolution = AddColumns | NoChange | Unsupported


def plan_evolution(before: TableSchema | None, sql: str, after: TableSchema | None, table: str) -> Evolution:
    """What `sql` does to a silver table.

    Args:
        before: the source table's structure ahead of the statement, None if it never had a row.
        after: the next structure that the log tells behind the statement, None if no row followed yet. It is believed
            over the statement where both name a column; further statements may lie between.
        table: the source table's name.
    """
    if before is None:
        return NoChange(None)
    ops = {target.op for target in statement_targets(sql, before.schema) if target.table in (table, None)}
    for op in ("drop_table", "rename_table", "truncate_table", "drop_database"):
        if op in ops:
            return Unsupported(f"{op.replace('_', ' ').upper()} is not followed")
    if "alter_table" in ops:
        return _plan_alter(before, alter_actions(sql), after)
    if "drop_index" in ops and "primary" in sql.lower():
        return Unsupported("the key changes")
    if "create_table" in ops and _replaces(sql):
        return Unsupported("the table is made anew")
    return NoChange(before)


def same_shape(one: TableSchema, other: TableSchema) -> bool:
    """Both structures look the same in silver: names, types and key; the columns' order does not count."""
    return one.primary_key == other.primary_key and _shape(one) == _shape(other)


def _shape(schema: TableSchema) -> dict[str, str]:
    return {column.name: silver_type(column) for column in schema.columns}


def _replaces(sql: str) -> bool:
    return sql.upper().split()[:3] == ["CREATE", "OR", "REPLACE"]


def _plan_alter(before: TableSchema, actions: tuple[Action, ...], after: TableSchema | None) -> Evolution:
    told = {column.name: column for column in after.columns} if after else {}
    schema, added = before, list[AddedColumn]()
    for action in actions:
        if action.kind is ActionKind.OTHER:
            return Unsupported(f"{action.text} is not followed")
        if action.kind is ActionKind.HARMLESS:
            continue
        for definition in action.columns:
            present = {column.name.lower(): column for column in schema.columns}
            if definition.problem:
                return Unsupported(definition.problem)
            known = told.get(definition.name) or definition.column
            if known is None:
                return Unsupported(f"the type of the column {definition.name} is not known")
            old = present.get((action.old_name or definition.name).lower())
            if action.kind is ActionKind.MODIFY:
                if old is None or old.name != known.name or not same_values(old, known):
                    return Unsupported(f"the column {definition.name} changes")
                schema = _with(schema, known, definition, instead=True)
            elif old is None:
                schema = _with(schema, known, definition, instead=False)
                added.append(AddedColumn(known, definition.fill(known)))
            elif not action.if_not_exists:
                return Unsupported(f"the column {definition.name} is there already")
    try:
        _shape(schema)
    except SchemaError as error:
        return Unsupported(error.message)
    return AddColumns(tuple(added), schema) if added else NoChange(schema)


def _with(schema: TableSchema, column: Column, definition: Definition, *, instead: bool) -> TableSchema:
    others = [other for other in schema.columns if other.name != column.name]
    names = [other.name.lower() for other in others]
    follows = definition.follows
    if follows == "":
        at = 0
    elif follows is not None and follows.lower() in names:
        at = names.index(follows.lower()) + 1
    elif instead:
        at = next(index for index, other in enumerate(schema.columns) if other.name == column.name)
    else:
        at = len(others)
    return replace(schema, columns=(*others[:at], column, *others[at:]))
