"""The events of MODIFY and CHANGE, by DM's names.

Source: pingcap/tiflow, dm/syncer/ddl.go, `needChangeColumnData` and `handleModifyColumn`. Differs from DM in one case
that DM does not detect: a shortened CHAR is a `value range decrease` here, an `alter table` there.
"""

from dataclasses import dataclass
from itertools import pairwise

from dmdelta.ddl.tokens import Cursor
from dmdelta.ddl.types.type_words import capacity, charset_named, in_charset, parse_type
from dmdelta.model.schema import Column, TableSchema
from dmdelta.model.type_names import BYTES, CHARACTERS, CLOCKED, INTEGERS, NAMED, SIZED


@dataclass(frozen=True, slots=True)
class _NewColumn:
    """The column that MODIFY defines; `charset` is the one in the statement, `placed` means FIRST or AFTER."""

    column: Column
    charset: str | None
    collates: bool
    placed: bool


def modify_event(cursor: Cursor, before: TableSchema | None, *, renames: bool) -> str:
    """The event of the text after MODIFY, or (`renames`) CHANGE."""
    cursor.accept("COLUMN")
    cursor.accept("IF", "EXISTS")
    old_name = cursor.identifier() if renames else None
    defined = _read(cursor)
    if defined is None or before is None:
        return "modify column"
    name = (old_name or defined.column.name).lower()
    old = next((column for column in before.columns if column.name.lower() == name), None)
    if old is None:
        return "modify column"
    new = defined.column if defined.column.charset else in_charset(defined.column, defined.charset or old.charset)
    if event := _data_event(old, new):
        return event
    if defined.charset is not None and defined.charset != old.charset:
        return "modify charset"
    if defined.collates:
        return "modify collation"
    if defined.placed:
        return "modify columns order"
    return "rename column" if old.name.lower() != defined.column.name.lower() else "alter table"


def _read(cursor: Cursor) -> _NewColumn | None:
    name = cursor.identifier()
    parsed = parse_type(cursor, name) if name is not None else None
    if parsed is None:
        return None
    column, _ = parsed
    words = [token.keyword or token.text for token in cursor.rest()]
    sets = [after for word, after in pairwise(words) if word in ("SET", "CHARSET")]
    return _NewColumn(
        column,
        charset_named(sets[0]) if sets else column.charset,
        collates="COLLATE" in words,
        placed="FIRST" in words or "AFTER" in words,
    )


def _data_event(old: Column, new: Column) -> str:
    """The event of a change that affects values; '' for none."""
    if old.type == new.type:
        return _same_type_event(old, new)
    if old.type in INTEGERS and new.type in INTEGERS:
        narrower = INTEGERS.index(new.type) < INTEGERS.index(old.type)
        return "value range decrease" if narrower or old.unsigned != new.unsigned else ""
    strings = (*CHARACTERS, *BYTES)
    if old.type in strings and new.type in strings and {old.type, new.type} != {"char", "varchar"}:
        return "modify column" if capacity(new) < capacity(old) else ""
    return "modify column"


def _same_type_event(old: Column, new: Column) -> str:
    if old.type == "decimal":
        same = (old.precision, old.scale, old.unsigned) == (new.precision, new.scale, new.unsigned)
        return "" if same else "precision decrease"
    if old.type in NAMED:
        return "" if new.members[: len(old.members)] == old.members else "value range decrease"
    if old.type in INTEGERS:
        return "" if old.unsigned == new.unsigned else "precision decrease"
    if old.type == "binary":
        return "" if old.length == new.length else "precision decrease"
    if old.type in SIZED:
        return "value range decrease" if capacity(new) < capacity(old) else ""
    if old.type == "bit":
        return "value range decrease" if new.length < old.length else ""
    if old.type in CLOCKED:
        return "value range decrease" if new.precision < old.precision else ""
    return "value range decrease" if old.unsigned != new.unsigned else ""
