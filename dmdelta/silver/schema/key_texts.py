"""The texts of keys, by which a quarantine has its rows: statements that change them.

A key's text has the columns' names and values. No statement updates the texts in quarantine.
"""

from dmdelta.changelog.extraction import keys_of
from dmdelta.ddl.tracking.effects import Altered
from dmdelta.ddl.types.silver_types import silver_type
from dmdelta.model.schema import StoredColumn, TableSchema

_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL(20,0)")
"""The types of silver whose values have the same digits in JSON."""


def changes_key_text(altered: Altered) -> bool:
    """Whether a row's key has another text after a change of the table's structure."""
    return key_kinds(altered.before) != key_kinds(altered.after)


def key_kinds(schema: TableSchema) -> list[tuple[str, str]]:
    """What determines the texts of keys: the names of the columns, and the types of their own values in silver."""
    own = (column.own if isinstance(column, StoredColumn) else column for column in keys_of(schema))
    kinds = ((column.name, silver_type(column)) for column in own)
    return [(name, "INTEGER" if kind in _INTEGERS else kind) for name, kind in kinds]
