"""Quoting of identifiers in MySQL's SQL."""


def quoted_name(*names: str) -> str:
    """Names as one quoted identifier: `schema`.`table`."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)
