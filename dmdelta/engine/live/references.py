"""The tables that a query names, found in its text: Spark has no schema for a task's tables under a root."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType
from sqlglot.dialects import Spark
from sqlglot.errors import TokenError

from dmdelta.errors import ConfigError
from dmdelta.model.spark_sql import quote

_NAME = re.compile(r"`(?:[^`]|``)+`|[^\W\d][\w$-]*|\d+[^\W\d][\w$]*")
_WORD = re.compile(r"\w+|.")
_BEFORE_ALIAS = (TokenType.FROM, TokenType.JOIN, TokenType.COMMA)
_NOT_ALIASED = ("VERSION", "TIMESTAMP", "FOR", "SYSTEM_VERSION", "SYSTEM_TIME", "TABLESAMPLE", "AS", "WITH")
_READING = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(")
_DESCRIBING = ("SHOW", "DESCRIBE", "DESC", "EXPLAIN")


@dataclass(frozen=True, slots=True)
class Reference:
    """A name of two parts in a statement.

    Attributes:
        begin, end: where it is in the text; `end` is exclusive.
        is_table: it names a table; False if it is the beginning of a column's name.
        needs_alias: a table that the statement gives no other name.
    """

    schema: str
    table: str
    begin: int
    end: int
    is_table: bool
    needs_alias: bool

    @property
    def name(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True, slots=True)
class ReadStatement:
    """A statement that only reads.

    Attributes:
        is_query: it returns rows of tables; False if it describes something.
    """

    text: str
    references: tuple[Reference, ...]
    is_query: bool

    def with_tables(self, place_of: Callable[[str], str | None]) -> str:
        """The text with other tables.

        Args:
            place_of: the table (SQL) for a name; None: the name stays.
        """
        places = {reference.name: place_of(reference.name) for reference in self.references if reference.is_table}
        known = [reference for reference in self.references if places.get(reference.name)]
        tables = {(reference.schema.lower(), reference.table) for reference in known}
        last = [table.lower() for _, table in tables]
        text, at = "", 0
        for reference in known:
            alias = reference.name if last.count(reference.table.lower()) > 1 else reference.table
            place = places[reference.name] if reference.is_table else quote(alias)
            text += f"{self.text[at : reference.begin]}{place}"
            text += f" AS {quote(alias)}" if reference.needs_alias else ""
            at = reference.end
        return text + self.text[at:]


def read_statement(text: str) -> ReadStatement:
    """Find the tables of a statement.

    Raises:
        ConfigError: it is not a statement, more than one, or one that may write.
    """
    try:
        # The tokenizer takes all that follows EXPLAIN for one token.
        tokens = Spark().tokenize(re.sub(r"^(\s*)EXPLAIN\b", r"\1SELECT ", text, count=1, flags=re.IGNORECASE))
    except TokenError as error:
        raise ConfigError("the statement has an open quotation mark or comment", hint="close it") from error
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens = tokens[:-1]
    if not tokens:
        raise ConfigError("there is no statement", hint="enter a query: SELECT …")
    if any(token.token_type is TokenType.SEMICOLON for token in tokens):
        raise ConfigError("there are several statements", hint="enter one at a time")
    word = _WORD.match(text, tokens[0].start)
    first = word[0].upper() if word is not None else ""
    if first not in (*_READING, *_DESCRIBING):
        raise ConfigError(f"{first} is not a query: this session only reads", hint="use SELECT, SHOW or DESCRIBE")
    references = tuple(_references(text, tokens))
    return ReadStatement(text[: tokens[-1].end + 1], references, first in _READING)


def _references(text: str, tokens: Sequence[Token]) -> list[Reference]:
    found: list[Reference] = []
    for index in range(len(tokens) - 2):
        schema, dot, table = tokens[index : index + 3]
        if dot.token_type is not TokenType.DOT or (index and tokens[index - 1].token_type is TokenType.DOT):
            continue
        parts = [text[token.start : token.end + 1] for token in (schema, table)]
        if not all(map(_NAME.fullmatch, parts)):
            continue
        schema_name, table_name = map(_unquoted, parts)
        following = tokens[index + 3] if index + 3 < len(tokens) else None
        is_table = following is None or following.token_type is not TokenType.DOT
        before = tokens[index - 1].token_type if index else None
        needs_alias = is_table and before in _BEFORE_ALIAS and not _is_alias(text, following)
        found.append(Reference(schema_name, table_name, schema.start, table.end + 1, is_table, needs_alias))
    return found


def _is_alias(text: str, token: Token | None) -> bool:
    """Whether a token after a table is its alias, or something that an alias must not precede."""
    if token is None:
        return False
    if text[token.start : token.end + 1].upper().split()[0] in _NOT_ALIASED:
        return True
    return token.token_type in (TokenType.VAR, TokenType.IDENTIFIER)


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
