"""Overrides a statement's types with the log's: a table map contains what a statement leaves to defaults."""

from dataclasses import replace

from dmdelta.ddl.tracking.effects import Altered
from dmdelta.ddl.types.type_words import known_type
from dmdelta.model.schema import Column, TableSchema

_SAME_WORD = {"json": "longtext"}
"""MariaDB's JSON is LONGTEXT in its log."""


def settled(effect: Altered, logged: TableSchema | None) -> Altered:
    """The effect with the types that the log has after the statement, None if it has none.

    Only columns whose type the statement sets are overridden, and only if the types agree: further statements may lie
    between it and the logged structure, so a column of a different type belongs to another statement.
    """
    if logged is None:
        return effect
    known = {column.name.lower(): column for column in logged.columns}
    before = {column.name: column for column in effect.before.columns}
    columns = tuple(
        column
        if origin.was is not None and replace(before[origin.was], name=column.name, nullable=column.nullable) == column
        else _overridden(column, known.get(column.name.lower()))
        for column, origin in zip(effect.after.columns, effect.origins, strict=True)
    )
    return replace(effect, after=replace(effect.after, columns=columns))


def _overridden(column: Column, logged: Column | None) -> Column:
    if logged is None or not _types_agree(column, logged):
        return column
    return replace(logged, name=column.name, nullable=column.nullable, visible=column.visible)


def _types_agree(column: Column, logged: Column) -> bool:
    return not known_type(column) or logged.type in (column.type, _SAME_WORD.get(column.type))
