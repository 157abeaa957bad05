"""Quoting of identifiers and string literals in MySQL's SQL."""


def quoted_name(*names: str) -> str:
    """Names as one quoted identifier: `schema`.`table`."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


def text(value: str) -> str:
    """A string literal for a session with backslash escapes."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''").replace("\0", "\\0") + "'"
