"""Tables of a lakehouse below a local root, without Spark."""

from pathlib import Path


def table_folder(table: str) -> Path:
    """The folder of a table by its SQL identifier from `Lakehouse`: names are escaped in the same way in both."""
    assert table.startswith("delta.`"), table
    return Path(table.removeprefix("delta.`").removesuffix("`").replace("``", "`"))


def is_table(table: str) -> bool:
    """Whether a table with this SQL identifier exists."""
    return (table_folder(table) / "_delta_log").is_dir()
