"""CREATE TABLE for a table that the target lacks, from the structure in the log: columns and primary key."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from dmdelta.ddl.types.type_words import characters
from dmdelta.errors import SinkError
from dmdelta.model.mysql_sql import quoted_name, text
from dmdelta.model.schema import Column, ConstantColumn, TableSchema
from dmdelta.model.type_names import INTEGERS, TEXTUAL
from dmdelta.sink.plan.target_table import PRIMARY, TargetTable
from dmdelta.sink.plan.tidb import tidb_charset, tidb_collation

ColumnChange = Literal["ADD", "MODIFY"]
_VARCHAR = 16_383
"""Maximum length of a VARCHAR in utf8mb4 characters."""
_NAME = 64
"""Maximum length of the name of a table, a schema or a source."""
_UTF8MB3 = {"utf8mb3": ("utf8",), "utf8": ("utf8mb3",)}
"""Old and new servers use one of these names."""
_UCA_520 = ("unicode_520_nopad_ci", "unicode_520_ci")
_LIKE = {"0900_ai_ci": _UCA_520, "uca1400_ai_ci": _UCA_520[1:], "uca1400_nopad_ai_ci": _UCA_520}
"""Collations of the newest MySQL and MariaDB that the other lacks, and the closest ones that most servers have."""
_NOT_IN_TIDB = frozenset({"geometry", "vector"})


def create_table(schema: TableSchema, collations: Collection[str], *, tidb: bool = False, merged: bool = False) -> str:
    """The statement.

    Args:
        schema: with the name of the target's table.
        collations: the target's collations.
        merged: other shards, which may lack some of the columns, have rows in it.

    Raises:
        SinkError: TiDB has no type for a column.
    """
    columns = _definitions(schema, collations, tidb=tidb, merged=merged)
    if schema.primary_key:
        key = (*schema.primary_key, *(column.name for column in schema.columns if isinstance(column, ConstantColumn)))
        columns.append(f"PRIMARY KEY ({', '.join(quoted_name(name) for name in key)})")
    return (
        f"CREATE TABLE IF NOT EXISTS {quoted_name(*schema.name)} ({', '.join(columns)}) DEFAULT CHARACTER SET utf8mb4"
    )


def add_columns(
    schema: TableSchema, target: TargetTable, collations: Collection[str], *, tidb: bool = False, empty: bool
) -> list[str]:
    """The statements that add to a table of the target the columns of a structure that it lacks; at least one.

    Columns that a route extracts also become part of each key of an empty table: rows of several source tables can have
    the same key. TiDB cannot change a clustered key: there the empty table is created again, without secondary indexes.

    Args:
        schema: with the name of the target's table.

    Raises:
        SinkError: TiDB has no type for a column.
    """
    missing = [column for column in schema.columns if column.name.lower() not in target.columns]
    extracted = [quoted_name(column.name) for column in missing if isinstance(column, ConstantColumn)]
    table = quoted_name(*target.name)
    if tidb and empty and extracted:
        return [f"DROP TABLE IF EXISTS {table}", create_table(schema, collations, tidb=tidb, merged=True)]
    changes = [
        f"ADD COLUMN {one}" for one in _definitions(replace(schema, columns=tuple(missing)), collations, tidb=tidb)
    ]
    if tidb:
        return [f"ALTER TABLE {table} {change}" for change in changes]
    changes += _wider_keys(target, extracted) if extracted and empty else ()
    return [f"ALTER TABLE {table} {', '.join(changes)}"]


def _wider_keys(target: TargetTable, extracted: Sequence[str]) -> Iterator[str]:
    """The changes that append columns to each key. Keys on expressions stay as they are."""
    for key in target.keys:
        if any(name is None for name, _ in key.parts):
            continue
        parts = [f"{quoted_name(name or '')}{f'({prefix})' if prefix else ''}" for name, prefix in key.parts]
        listed = ", ".join([*parts, *extracted])
        if key.name == PRIMARY:
            yield f"DROP PRIMARY KEY, ADD PRIMARY KEY ({listed})"
        else:
            yield f"DROP INDEX {quoted_name(key.name)}, ADD UNIQUE INDEX {quoted_name(key.name)} ({listed})"


def _definitions(schema: TableSchema, collations: Collection[str], *, tidb: bool, merged: bool = False) -> list[str]:
    if tidb:
        _check_types(schema)
    charset = _charsets(collations, tidb=tidb)
    return [
        f"{quoted_name(column.name)} {_type(column, charset)}{_null(column, schema, merged=merged)}{_default(column)}"
        for column in schema.columns
    ]


def column_statement(
    change: ColumnChange, table: TableSchema, collations: Collection[str], *, tidb: bool = False
) -> str:
    """The statement that changes a column of a table of the target; it allows NULL.

    Args:
        table: the target's name, and the one column.
        collations: the target's collations.

    Raises:
        SinkError: TiDB has no type for the column.
    """
    if tidb:
        _check_types(table)
    (column,) = table.columns
    kind = _type(column, _charsets(collations, tidb=tidb))
    definition = f"{quoted_name(column.name)} {kind} NULL{_default(column)}"
    return f"ALTER TABLE {quoted_name(*table.name)} {change} COLUMN {definition}"


def _charsets(collations: Collection[str], *, tidb: bool) -> Callable[[Column], str]:
    return _tidb_charset if tidb else partial(_charset, collations=collations)


def _check_types(schema: TableSchema) -> None:
    unsupported = next((column for column in schema.columns if column.type in _NOT_IN_TIDB), None)
    if unsupported is not None:
        raise SinkError(
            f"TiDB has no type for the column {unsupported.name} ({unsupported.type}) of {'.'.join(schema.name)}",
            hint="exclude the table with the block-allow-list, or create it in the target with another type for the "
            "column: a geometry fits a LONGBLOB",
        )


def _null(column: Column, schema: TableSchema, *, merged: bool) -> str:
    identifies = isinstance(column, ConstantColumn) or column.name in schema.primary_key
    # A shard without the column has no value for it.
    required = identifies or (not column.nullable and not (merged and column.default is None))
    # An explicit NULL: without it old servers give a first TIMESTAMP the default CURRENT_TIMESTAMP.
    return " NOT NULL" if required else " NULL"


def _default(column: Column) -> str:
    """Of a merged table, also the value in the rows of shards that lack the column."""
    return f" DEFAULT {text(column.default)}" if column.default is not None and not _is_long(column) else ""


def _is_long(column: Column) -> bool:
    """Whether a text is too long for a VARCHAR of the target, and gets a type without a default."""
    return column.type in ("char", "varchar") and (characters(column) or column.length) > _VARCHAR


def _type(column: Column, charset: Callable[[Column], str]) -> str:
    kind = column.type
    if isinstance(column, ConstantColumn):
        return f"VARCHAR({max(len(column.value), _NAME)}) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
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
        return f"{kind.upper()}({', '.join(map(text, column.members))}){charset(column)}"
    if kind in ("char", "varchar"):
        count = characters(column) or column.length
        return ("MEDIUMTEXT" if _is_long(column) else f"{kind.upper()}({count})") + charset(column)
    return kind.upper() + (charset(column) if kind in TEXTUAL else "")


def nearest_collations(schema: TableSchema, collations: Collection[str]) -> dict[str, str]:
    """The collations of a table's columns that the target lacks, and what its columns get instead."""
    nearest: dict[str, str] = {}
    for column in schema.columns:
        charset, used = _chosen(column, collations)
        if column.collation is not None and used != _renamed(column.collation, column.charset or "", charset or ""):
            nearest[column.collation] = used or f"the default of {charset}"
    return nearest


def _charset(column: Column, collations: Collection[str]) -> str:
    return _clause(*_chosen(column, collations))


def _chosen(column: Column, collations: Collection[str]) -> tuple[str | None, str | None]:
    """The source's character set and collation if the target has them, else a collation at least as distinguishing."""
    if column.charset is None:
        return None, None
    names = (column.charset, *_UTF8MB3.get(column.charset, ()), "utf8mb4")
    charset = next(name for name in names if f"{name}_bin" in collations or name == "utf8mb4")
    if column.collation is None:
        return charset, None
    wanted = _renamed(column.collation, column.charset, charset)
    bare = wanted.removeprefix(f"{charset}_")
    # Binary collations also differ in whether trailing spaces count.
    bins = ("0900_bin", "nopad_bin", "bin") if "0900_" in bare or "nopad_" in bare else ("bin",)
    candidates = [wanted, *(f"{charset}_{name}" for name in (*_LIKE.get(bare, ()), *bins))]
    return charset, next((name for name in candidates if name in collations), None)


def _renamed(collation: str, charset: str, used: str) -> str:
    """A collation in the target's spelling of its character set."""
    return collation.replace(charset, used, 1)


def _tidb_charset(column: Column) -> str:
    if column.charset is None:
        return ""
    collation = tidb_collation(column.charset, column.collation) if column.collation else None
    return _clause(tidb_charset(column.charset), collation)


def _clause(charset: str | None, collation: str | None) -> str:
    if charset is None:
        return ""
    return f" CHARACTER SET {charset}" + (f" COLLATE {collation}" if collation else "")
