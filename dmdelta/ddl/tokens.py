"""A tokenizer for MySQL's and MariaDB's SQL, sufficient to find names, clauses and literals."""

import re
from dataclasses import dataclass, field
from enum import Enum

from dmdelta.model.mysql_sql import BLANK, LINE_COMMENT, WORD

_TOKEN = re.compile(
    rf"""
    (?P<space>{BLANK}+|{LINE_COMMENT}|/\*(?![!M])(?:.*?)\*/|/\*M(?!!)(?:.*?)\*/)
  | (?P<open>/\*M?!\d*)                       # a versioned comment: its content counts
  | (?P<close>\*/)
  | (?P<name>`(?:[^`]|``)*`)
  | (?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
  | (?P<word>{WORD})
  | (?P<mark>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_NOT_IN_NAMES = re.compile("[\U00010000-\U0010ffff]")
"""MySQL replaces each of these characters in a name with a question mark. MariaDB refuses them."""


class Kind(Enum):
    """The kind of a token."""

    NAME = "name"
    """In backticks: never a keyword."""
    STRING = "string"
    """In quotes: a literal, or a name with ANSI_QUOTES."""
    WORD = "word"
    """A keyword, a name or a number."""
    MARK = "mark"


@dataclass(frozen=True, slots=True)
class Token:
    """One token.

    Attributes:
        text: without quotes and escapes.
        begin, end: its offsets in the statement.
    """

    kind: Kind
    text: str
    begin: int = field(compare=False)
    end: int = field(compare=False)

    @property
    def keyword(self) -> str:
        """The upper-case word, '' if it cannot be a keyword; a mark is itself.

        A word outside ASCII is also itself: in upper case, `ſet` would be SET.
        """
        if self.kind not in (Kind.WORD, Kind.MARK):
            return ""
        return self.text.upper() if self.text.isascii() else self.text


def tokenize(sql: str) -> list[Token]:
    """The tokens of a statement, without comments. Never raises: an unrecognized character is a mark."""
    tokens: list[Token] = []
    for match in _TOKEN.finditer(sql):
        kind, text = match.lastgroup, match.group()
        if kind == "name":
            tokens.append(Token(Kind.NAME, _stored_name(text[1:-1].replace("``", "`")), *match.span()))
        elif kind == "string":
            tokens.append(Token(Kind.STRING, _unquote(text), *match.span()))
        elif kind == "word":
            tokens.append(Token(Kind.WORD, _stored_name(text), *match.span()))
        elif kind == "mark":
            tokens.append(Token(Kind.MARK, text, *match.span()))
    return tokens


def versioned_comments(sql: str) -> list[tuple[str, int, int]]:
    """The comments whose content counts: what opens each, and its offsets."""
    comments = list[tuple[str, int, int]]()
    opening: re.Match[str] | None = None
    for match in _TOKEN.finditer(sql):
        if match.lastgroup == "open":
            opening = opening or match
        elif match.lastgroup == "close" and opening is not None:
            comments.append((opening.group(), opening.start(), match.end()))
            opening = None
    return comments


def _stored_name(text: str) -> str:
    return text if text.isascii() else _NOT_IN_NAMES.sub("?", text)


def _unquote(text: str) -> str:
    quote = text[0]
    body = text[1:-1].replace(quote * 2, quote)
    return _ESCAPED.sub(lambda match: _ESCAPES.get(match.group(1), match.group(1)), body)


class Cursor:
    """Reads tokens in order."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._next = 0

    @property
    def ended(self) -> bool:
        return self._next >= len(self._tokens)

    def peek(self, ahead: int = 0) -> str:
        """The keyword `ahead` tokens from here, '' for none."""
        index = self._next + ahead
        return self._tokens[index].keyword if index < len(self._tokens) else ""

    @property
    def position(self) -> int:
        """How many tokens are consumed."""
        return self._next

    def since(self, position: int) -> list[Token]:
        """The tokens consumed since a position."""
        return self._tokens[position : self._next]

    def take(self) -> Token | None:
        """The next token, None at the end."""
        if self.ended:
            return None
        self._next += 1
        return self._tokens[self._next - 1]

    def accept(self, *keywords: str) -> bool:
        """Consume these keywords if all of them come next."""
        if all(self.peek(ahead) == keyword for ahead, keyword in enumerate(keywords)):
            self._next += len(keywords)
            return True
        return False

    def accept_any(self, *keywords: str) -> str:
        """Consume one of these keywords; '' if none comes next."""
        keyword = self.peek()
        if keyword and keyword in keywords:
            self._next += 1
            return keyword
        return ""

    def identifier(self) -> str | None:
        """Consume a name; None if the next token cannot be one."""
        if self.ended or self._tokens[self._next].kind is Kind.MARK:
            return None
        token = self.take()
        return token.text if token else None

    def string(self) -> str | None:
        """Consume a text in quotes; None if none comes next."""
        if self.ended or self._tokens[self._next].kind is not Kind.STRING:
            return None
        self._next += 1
        return self._tokens[self._next - 1].text

    def table_name(self, default_schema: str) -> tuple[str, str] | None:
        """Consume `table`, `schema.table` or `.table`: (schema, table), None if no name comes next."""
        self.accept(".")
        first = self.identifier()
        if first is None:
            return None
        if self.accept("."):
            second = self.identifier()
            return (first, second) if second is not None else None
        return (default_schema, first)

    def parenthesized(self) -> "list[Token] | None":
        """Consume `( … )`, return its tokens; None if no parenthesis comes next."""
        if not self.accept("("):
            return None
        depth, inner = 1, []
        while (token := self.take()) is not None:
            depth += {"(": 1, ")": -1}.get(token.keyword, 0)
            if depth == 0:
                break
            inner.append(token)
        return inner

    def rest(self) -> list[Token]:
        """Consume all remaining tokens."""
        left = self._tokens[self._next :]
        self._next = len(self._tokens)
        return left


def split_at_commas(tokens: list[Token]) -> list[list[Token]]:
    """The parts between commas outside of parentheses."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token.keyword, 0)
        if token.keyword == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]
