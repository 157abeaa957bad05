"""What MODIFY and CHANGE do to a column, by DM's names.

Source: pingcap/tiflow, dm/syncer/ddl.go, `needChangeColumnData` and `handleModifyColumn`. Differs where DM is blind: a
CHAR that becomes shorter is a `value range decrease` here, an `alter table` there.
"""

from dataclasses import dataclass
from itertools import pairwise

from dmdelta.ddl.tokens import Cursor
from dmdelta.ddl.type_words import capacity, charset_named, in_charset, parse_type
from dmdelta.model.schema import Column, TableSchema
from dmdelta.model.type_names import BYTES, CHARACTERS, CLOCKED, INTEGERS, NAMED, SIZED


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A column as MODIFY wants it; `charset` is the one that the statement tells, `placed` is FIRST or AFTER."""

    column: Column
    charset: str | None = None
    collates: bool = False
    placed: bool = False


def modify_event(cursor: Cursor, before: TableSchema | None, *, renames: bool) -> str:
    """The event of what stands behind MODIFY, or (`renames`) CHANGE."""
    cursor.accept("COLUMN")
    cursor.accept("IF", "EXISTS")
    old_name = cursor.identifier() if renames else None
    wanted = _read(cursor)
    if wanted is None or before is None:
        return "modify column"
    name = (old_name or wanted.column.name).lower()
    old = next((column for column in before.columns if column.name.lower() == name), None)
    if old is None:
        return "modify column"
    new = wanted.column if wanted.column.charset else in_charset(wanted.column, wanted.charset or old.charset)
    if found := _data_event(old, new):
        return found
    if wanted.charset is not None and wanted.charset != old.charset:
        return "modify charset"
    if wanted.collates:
        return "modify collation"
    if wanted.placed:
        return "modify columns order"
    return "rename column" if old.name.lower() != wanted.column.name.lower() else "alter table"


def _read(cursor: Cursor) -> _Wanted | None:
    name = cursor.identifier()
    parsed = parse_type(cursor, name) if name is not None else None
    if parsed is None:
        return None
    column, _ = parsed
    words = [token.keyword or token.text for token in cursor.rest()]
    sets = [after for word, after in pairwise(words) if word in ("SET", "CHARSET")]
    return _Wanted(
        column,
        charset_named(sets[0]) if sets else column.charset,
        collates="COLLATE" in words,
        placed="FIRST" in words or "AFTER" in words,
    )


def _data_event(old: Column, new: Column) -> str:
    """The event of a change that values feel; '' for none."""
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
