"""Quoting of identifiers and string literals in MySQL's SQL, and regular expressions for its words and blanks.

The expressions equal the servers' lexers for UTF-8: a character outside ASCII is always part of a word.
"""

WORD = r"[0-9A-Za-z_$\u0080-\U0010ffff]+"
"""A keyword, a number or an unquoted name. `\\w` lacks the vowel signs of Thai and Hindi, combining accents and €."""
BLANK = r"[ \t\n\v\f\r]"
"""`\\s` also has U+00A0 and U+3000, which are part of a name."""
LINE_COMMENT = r"(?:--(?=[\x00-\x20\x7f]|$)|\#)[^\n]*"
"""Servers take two minus signs for a comment before a blank, a control character or the end."""
NO_BREAK_SPACE = "\u00a0"


def quoted_name(*names: str) -> str:
    """Names as one quoted identifier: `schema`.`table`."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


def text(value: str) -> str:
    """A string literal for a session with backslash escapes."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''").replace("\0", "\\0") + "'"
