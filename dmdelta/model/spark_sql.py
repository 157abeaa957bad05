"""Names and texts as they stand in statements of Spark SQL."""


def quote(name: str) -> str:
    """`name` as one identifier."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """`text` as one string.

    Without a brace, which would begin a variable where Spark is left to substitute them (`${env:NAME}`), or a column
    where the statement is a template of ours.
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("{", "\\u007B") + "'"
