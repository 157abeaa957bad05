"""Quoting of identifiers and string literals in Spark SQL."""


def quote(name: str) -> str:
    """`name` as a quoted identifier."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """`text` as a string literal.

    Escapes opening braces, which would start a variable where Spark substitutes variables (`${env:NAME}`), or a column
    where the statement is a template.
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("{", "\\u007B") + "'"
