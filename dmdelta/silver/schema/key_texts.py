"""The texts of keys, by which a quarantine has its rows: statements that change them.

A key's text has the columns' names and values. No statement updates the texts in quarantine.
"""

from dataclasses import replace

from dmdelta.changelog.extraction import keys_of
from dmdelta.ddl.types.conversion import ConversionKind, plan_conversion
from dmdelta.ddl.types.number_bounds import INTEGER_BITS
from dmdelta.ddl.types.silver_types import silver_type
from dmdelta.model.schema import Column, StoredColumn, TableSchema

_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL(20,0)")
"""The types of silver whose values have the same digits in JSON."""


def changes_key_text(before: TableSchema, after: TableSchema, *, mariadb: bool = False) -> bool:
    """Whether a row's key has another text in another structure of its table."""
    former, own = _own_keys(before), _own_keys(after)
    if list(map(_kind, former)) != list(map(_kind, own)):
        return True
    return any(_is_rewritten(old, new, mariadb=mariadb) for old, new in zip(former, own, strict=True))


def _own_keys(schema: TableSchema) -> list[Column]:
    """The columns of a table's key with their own types."""
    return [column.own if isinstance(column, StoredColumn) else column for column in keys_of(schema)]


def _kind(column: Column) -> tuple[str, str]:
    """The column's name, and the type of its values in silver."""
    kind = silver_type(column)
    return column.name, "INTEGER" if kind in _INTEGERS else kind


def _is_rewritten(old: Column, new: Column, *, mariadb: bool) -> bool:
    """Whether values of a key's column change although silver has them in the same type."""
    old, new = (replace(column, nullable=False) for column in (old, new))  # a key has no NULLs
    if {old.type, new.type} <= INTEGER_BITS.keys():
        return False  # only a session that is not strict converts the integers that do not fit
    return plan_conversion(old, new, mariadb=mariadb).kind not in (ConversionKind.SAME, ConversionKind.WIDEN)
