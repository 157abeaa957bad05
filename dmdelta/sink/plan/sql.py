"""The target's SQL: one statement for similar rows."""

from collections.abc import Sequence

from dmdelta.sink.change import Shape


def insert(shape: Shape, rows: Sequence[str]) -> str:
    return f"INSERT INTO {shape.table} {shape.columns} VALUES {','.join(rows)}"


def replace(shape: Shape, rows: Sequence[str]) -> str:
    return f"REPLACE INTO {shape.table} {shape.columns} VALUES {','.join(rows)}"


def upsert(shape: Shape, rows: Sequence[str]) -> str:
    """Updates of rows whose keys stay. Uses `VALUES()`: MariaDB and TiDB do not support an alias for the new row."""
    return f"{insert(shape, rows)} ON DUPLICATE KEY UPDATE {shape.assigned}"


def insert_some(shape: Shape, sets: str) -> str:
    """Insert a row of which only some columns are known."""
    return f"INSERT INTO {shape.table} SET {sets}"


def replace_some(shape: Shape, sets: str) -> str:
    return f"REPLACE INTO {shape.table} SET {sets}"


def update(shape: Shape, sets: str, identity: str, *, ignore: bool = False) -> str:
    """Update a row; `ignore`: unless another row conflicts."""
    if shape.keyless:
        return f"UPDATE {shape.table} SET {sets} WHERE {identity} LIMIT 1"
    return f"UPDATE {'IGNORE ' * ignore}{shape.table} SET {sets} WHERE {shape.identity} = {identity}"


def delete(shape: Shape, identities: Sequence[str], *, ignore: bool = False) -> str:
    """Delete rows by key; without a key, a single row. `ignore`: skip rows that are referenced."""
    if shape.keyless:
        return f"DELETE FROM {shape.table} WHERE {identities[0]} LIMIT 1"
    return f"DELETE {'IGNORE ' * ignore}FROM {shape.table} WHERE {shape.identity} IN ({','.join(identities)})"
