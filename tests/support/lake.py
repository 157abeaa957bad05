"""Tables of a lakehouse below a local root, without Spark."""

from pathlib import Path


def table_folder(table: str) -> Path:
    """The folder of a table by its SQL identifier from `Lakehouse`: names are escaped in the same way in both."""
    assert table.startswith("delta.`"), table
    return Path(table.removeprefix("delta.`").removesuffix("`").replace("``", "`"))


def is_table(table: str) -> bool:
    """Whether a table with this SQL identifier exists."""
    return (table_folder(table) / "_delta_log").is_dir()


def newest_version(table: str) -> int:
    """The newest version of a Delta table with this SQL identifier, from the names in its log; -1: it does not exist."""
    commits = (table_folder(table) / "_delta_log").glob("*.json")
    return max((int(commit.stem) for commit in commits if commit.stem.isdigit()), default=-1)
