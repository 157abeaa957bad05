"""Statements in the quotes of the default sql_mode."""

import pytest

from dmdelta.binlog.events.quoting import ANSI_QUOTES, NO_BACKSLASH_ESCAPES, in_default_mode, with_plain_blanks
from dmdelta.ddl.tokens import tokenize

BOTH = ANSI_QUOTES | NO_BACKSLASH_ESCAPES


@pytest.mark.parametrize(
    ("mode", "sql", "wanted"),
    [
        (NO_BACKSLASH_ESCAPES, r"x '\', y '\'", r"x '\\', y '\\'"),
        (NO_BACKSLASH_ESCAPES, r"'it''s\' '' '\\'", r"'it''s\\' '' '\\\\'"),
        (NO_BACKSLASH_ESCAPES, r'"a\" "b""\" ' + r"""'"\' """, r'"a\\" "b""\\" ' + r"""'"\\' """),
        (NO_BACKSLASH_ESCAPES, r"`a\'` '\'", r"`a\'` '\\'"),
        (NO_BACKSLASH_ESCAPES, "/* '\\ */ '\\' -- '\\\n'\\' # '\\\n'\\'", "/* '\\ */ '\\\\' -- '\\\n'\\\\' # '\\\n'\\\\'"),
        (NO_BACKSLASH_ESCAPES, r"/*!50100 '\' */ /*M! '\' */", r"/*!50100 '\\' */ /*M! '\\' */"),
        (NO_BACKSLASH_ESCAPES, "--\x01 '\n'\\'", "--\x01 '\n'\\\\'"),
        (NO_BACKSLASH_ESCAPES, r"a \ '", r"a \ '"),
        (ANSI_QUOTES, r"""x "a" 'b\'"c' "d`e""f\" """, r"""x `a` 'b\'"c' `d``e"f\` """),
        (ANSI_QUOTES, '/* "a" */ `"` # "\n"b"', '/* "a" */ `"` # "\n`b`'),
        (ANSI_QUOTES, r"'\'", r"'\'"),
        (BOTH, r"""x "a\" '\' "b" """, r"""x `a\` '\\' `b` """),
        (0, r"""x "a" '\' """, r"""x "a" '\' """),
    ],
)  # fmt: skip
def test_quotes_and_backslashes(mode, sql, wanted):
    """Texts keep their characters; names and comments keep their backslashes."""
    assert in_default_mode(sql, mode) == wanted


@pytest.mark.parametrize(
    ("mode", "sql", "wanted"),
    [
        (0, "DROP\u00a0TABLE \u00a0t", "DROP TABLE  t"),
        (0, "`a\u00a0b` 'c\u00a0' \"\u00a0\\\"\u00a0\" /*\u00a0*/ #\u00a0", "`a\u00a0b` 'c\u00a0' \"\u00a0\\\"\u00a0\" /*\u00a0*/ #\u00a0"),
        (0, "a --\u00a0it's\n\u00a0b", "a -- it's\n b"),
        (0, "'--\u00a0'", "'--\u00a0'"),
        (0, "/*!50100\u00a0a */", "/*!50100 a */"),
        (NO_BACKSLASH_ESCAPES, "'\\'\u00a0'\\'", "'\\' '\\'"),
        (ANSI_QUOTES, '"a\\"\u00a0"b"', '"a\\" "b"'),
    ],
)  # fmt: skip
def test_no_break_spaces(mode, sql, wanted):
    """They become blanks outside of names, texts and comments."""
    assert with_plain_blanks(sql, mode) == wanted


def test_the_tokens_are_those_of_the_session():
    r"""A text that ends with `\` hides nothing after it."""
    sql = in_default_mode(r"""ALTER TABLE "t" ADD x VARCHAR(9) DEFAULT '\', ADD y VARCHAR(9) DEFAULT '\'""", BOTH)
    assert [token.text for token in tokenize(sql) if token.text in ("t", "\\", "x", "y")] == ["t", "x", "\\", "y", "\\"]
