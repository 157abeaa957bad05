"""Overrides a statement's types with the log's: a table map contains what a statement leaves to defaults."""

from dataclasses import dataclass, replace

from dmdelta.ddl.tracking.effects import Altered
from dmdelta.ddl.types.type_words import characters, is_text, known_type
from dmdelta.model.schema import Column, TableSchema

_SAME_WORD = {"json": "longtext"}
"""MariaDB's JSON is LONGTEXT in its log."""


@dataclass(frozen=True, slots=True)
class LoggedStructure:
    """The next structure in the log after a statement.

    Attributes:
        behind_others: further statements on the table are between the statement and the structure.
    """

    schema: TableSchema
    behind_others: bool = False


def settled(effect: Altered, logged: LoggedStructure | None) -> Altered:
    """The effect with the types that the log has after the statement, None if it has none.

    Only columns whose type the statement sets are overridden, and only if the types agree. A type behind other
    statements may be that of one of them: then the log completes only what the statement leaves open.
    """
    if logged is None:
        return effect
    known = {column.name.lower(): column for column in logged.schema.columns}
    before = {column.name: column for column in effect.before.columns}
    agree = _agree_where_determined if logged.behind_others else _types_agree
    columns = list[Column]()
    for column, origin in zip(effect.after.columns, effect.origins, strict=True):
        was, other = before.get(origin.was or ""), known.get(column.name.lower())
        unset = was is not None and replace(was, name=column.name, nullable=column.nullable) == column
        # A new column of an unknown type has no values that this statement converts.
        is_open = not known_type(column) and (was is None or not logged.behind_others)
        if other is not None and not unset and (is_open or agree(column, other)):
            column = replace(other, name=column.name, nullable=column.nullable, visible=column.visible)  # noqa: PLW2901
        columns.append(column)
    return replace(effect, after=replace(effect.after, columns=tuple(columns)))


def _types_agree(column: Column, logged: Column) -> bool:
    return logged.type in (column.type, _SAME_WORD.get(column.type))


def _agree_where_determined(column: Column, logged: Column) -> bool:
    """Whether the columns differ at most in what the statement leaves open: without a character set, this is the
    character set, and the length counts characters.
    """
    if not _types_agree(column, logged):
        return False
    same = replace(logged, name=column.name, type=column.type, nullable=column.nullable, visible=column.visible)
    if is_text(column) and column.charset is None:
        length = characters(logged)
        return length is not None and replace(same, charset=None, length=length, collation=None) == column
    return replace(same, collation=column.collation) == column
