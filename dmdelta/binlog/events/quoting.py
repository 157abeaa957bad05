"""Rewrites a statement for a session in UTF-8 with the default sql_mode: bronze stores all statements so."""

import re

from dmdelta.model.mysql_sql import LINE_COMMENT, NO_BREAK_SPACE, quoted_name

ANSI_QUOTES = 0x4
"""Names are in double quotes, too."""
NO_BACKSLASH_ESCAPES = 0x100000

_OTHER = rf"{LINE_COMMENT}|/\*(?!M?!).*?\*/|`(?:[^`]|``)*`"
"""Comments (but versioned ones, whose content counts) and names: their quotes and backslashes begin nothing."""
_ESCAPING, _PLAIN = r"{0}(?:[^{0}\\]|\\.|{0}{0})*{0}", r"{0}(?:[^{0}]|{0}{0})*{0}"


def in_default_mode(sql: str, mode: int) -> str:
    """The text that a session in the default sql_mode reads as a session in `mode` reads `sql`.

    Backslashes that are no escapes are doubled, names in double quotes get backticks.
    """
    ansi, plain = bool(mode & ANSI_QUOTES), bool(mode & NO_BACKSLASH_ESCAPES)
    if not (ansi and '"' in sql) and not (plain and "\\" in sql):
        return sql

    def quoted(match: re.Match[str]) -> str:
        if match.lastgroup is None:
            return match.group()
        if ansi and match.lastgroup == "double":
            return quoted_name(match.group()[1:-1].replace('""', '"'))
        return match.group().replace("\\", "\\\\") if plain else match.group()

    return re.sub(_not_code(mode), quoted, sql, flags=re.DOTALL)


def with_plain_blanks(sql: str, mode: int) -> str:
    """The text of a session in `mode` with blanks for the no-break spaces that are neither quoted nor in a comment.

    In a single-byte character set a server takes them for blanks, in UTF-8 for a part of a name.
    """
    blank = f"--{NO_BREAK_SPACE}[^\n]*|{NO_BREAK_SPACE}"

    def plain(match: re.Match[str]) -> str:
        return match.group().replace(NO_BREAK_SPACE, " ") if match.lastgroup == "blank" else match.group()

    return re.sub(f"{_not_code(mode)}|(?P<blank>{blank})", plain, sql, flags=re.DOTALL)


def _not_code(mode: int) -> str:
    """A regular expression for the comments, quoted names and texts of a session in `mode`."""
    text = _PLAIN if mode & NO_BACKSLASH_ESCAPES else _ESCAPING
    double = (_PLAIN if mode & ANSI_QUOTES else text).format('"')
    return rf"{_OTHER}|(?P<single>{text.format(chr(39))})|(?P<double>{double})"
