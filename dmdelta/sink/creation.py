"""CREATE TABLE for a table that the target lacks, from the structure that the log tells: columns and primary key."""

from dmdelta.ddl.type_words import characters
from dmdelta.model.schema import Column, ConstantColumn, TableSchema
from dmdelta.model.type_names import INTEGERS, TEXTUAL
from dmdelta.sink.statements import quoted, text

_VARCHAR = 16_383
"""Characters of utf8mb4 that a row of a VARCHAR may have at most."""


def create_table(schema: TableSchema) -> str:
    """The statement; `schema` is named as the target's table."""
    columns = [f"{quoted(column.name)} {_type(column)}{_null(column, schema)}" for column in schema.columns]
    if schema.primary_key:
        columns.append(f"PRIMARY KEY ({', '.join(quoted(name) for name in schema.primary_key)})")
    return f"CREATE TABLE IF NOT EXISTS {quoted(*schema.name)} ({', '.join(columns)}) DEFAULT CHARACTER SET utf8mb4"


def _null(column: Column, schema: TableSchema) -> str:
    required = not column.nullable or column.name in schema.primary_key
    # An explicit NULL: without it old servers give a first TIMESTAMP a default that follows the clock.
    return " NOT NULL" if required else " NULL"


def _type(column: Column) -> str:
    kind = column.type
    if isinstance(column, ConstantColumn):
        return f"VARCHAR({max(len(column.value), 255)})"
    if kind in INTEGERS:
        return kind.upper() + (" UNSIGNED" if column.unsigned else "")
    if kind == "decimal":
        return f"DECIMAL({column.precision},{column.scale})" + (" UNSIGNED" if column.unsigned else "")
    if kind in ("float", "double"):
        return kind.upper() + (" UNSIGNED" if column.unsigned else "")
    if kind in ("time", "datetime", "timestamp"):
        return f"{kind.upper()}({column.precision})"
    if kind in ("bit", "binary", "varbinary"):
        return f"{kind.upper()}({column.length})"
    if kind in ("enum", "set"):
        return f"{kind.upper()}({', '.join(map(text, column.members))}){_charset(column)}"
    if kind in ("char", "varchar"):
        count = characters(column) or column.length
        return (f"{kind.upper()}({count})" if count <= _VARCHAR else "MEDIUMTEXT") + _charset(column)
    return kind.upper() + (_charset(column) if kind in TEXTUAL else "")


def _charset(column: Column) -> str:
    if column.charset is None:
        return ""
    return f" CHARACTER SET {column.charset}" + (f" COLLATE {_known(column.collation)}" if column.collation else "")


def _known(collation: str) -> str:
    """A collation that every server has: MySQL's and MariaDB's newest have none of each other's."""
    if "_0900_" not in collation and "uca1400" not in collation:
        return collation
    exact = collation.endswith(("_bin", "_as_cs"))
    return f"{collation.partition('_')[0]}_{'bin' if exact else 'unicode_520_ci'}"
