"""Rewrites a statement's quotes for the default sql_mode, in which bronze stores all statements."""

import re

from dmdelta.model.mysql_sql import quoted_name

ANSI_QUOTES = 0x4
"""Names are in double quotes, too."""
NO_BACKSLASH_ESCAPES = 0x100000

_OTHER = r"--(?=\s|$)[^\n]*|\#[^\n]*|/\*(?!M?!).*?\*/|`(?:[^`]|``)*`"
"""Comments (but versioned ones, whose content counts) and names: their quotes and backslashes begin nothing."""
_ESCAPING, _PLAIN = r"{0}(?:[^{0}\\]|\\.|{0}{0})*{0}", r"{0}(?:[^{0}]|{0}{0})*{0}"


def in_default_mode(sql: str, mode: int) -> str:
    """The text that a session in the default sql_mode reads as a session in `mode` reads `sql`.

    Backslashes that are no escapes are doubled, names in double quotes get backticks.
    """
    ansi, plain = bool(mode & ANSI_QUOTES), bool(mode & NO_BACKSLASH_ESCAPES)
    if not (ansi and '"' in sql) and not (plain and "\\" in sql):
        return sql
    text = _PLAIN if plain else _ESCAPING
    double = (_PLAIN if ansi else text).format('"')
    pattern = rf"{_OTHER}|(?P<single>{text.format(chr(39))})|(?P<double>{double})"

    def quoted(match: re.Match[str]) -> str:
        if match.lastgroup is None:
            return match.group()
        if ansi and match.lastgroup == "double":
            return quoted_name(match.group()[1:-1].replace('""', '"'))
        return match.group().replace("\\", "\\\\") if plain else match.group()

    return re.sub(pattern, quoted, sql, flags=re.DOTALL)
