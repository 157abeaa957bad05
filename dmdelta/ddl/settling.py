"""The log is believed over a statement: a table map knows what a statement leaves to defaults."""

from dataclasses import replace

from dmdelta.ddl.effects import Altered
from dmdelta.ddl.type_words import known_type
from dmdelta.model.schema import Column, TableSchema

_SAME_WORD = {"json": "longtext"}
"""MariaDB's JSON is LONGTEXT in its log."""


def settled(effect: Altered, told: TableSchema | None) -> Altered:
    """The effect with the types that the log tells behind the statement, None if it tells none.

    Only columns that the statement gives a type are taken over, and only their types: further statements may lie
    between it and what is told, so a column of another type is another statement's.
    """
    if told is None:
        return effect
    known = {column.name.lower(): column for column in told.columns}
    before = {column.name: column for column in effect.before.columns}
    columns = tuple(
        column
        if origin.was is not None and replace(before[origin.was], name=column.name, nullable=column.nullable) == column
        else _settled(column, known.get(column.name.lower()))
        for column, origin in zip(effect.after.columns, effect.origins, strict=True)
    )
    return replace(effect, after=replace(effect.after, columns=columns))


def _settled(column: Column, told: Column | None) -> Column:
    if told is None or not _agree(column, told):
        return column
    return replace(told, name=column.name, nullable=column.nullable, visible=column.visible)


def _agree(column: Column, told: Column) -> bool:
    return not known_type(column) or told.type in (column.type, _SAME_WORD.get(column.type))
