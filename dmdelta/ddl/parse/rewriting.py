"""Rewrites a DDL statement with other names: replaces all table and database names in its text."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from dmdelta.ddl.parse.statements import (
    accept_modifiers,
    at_new_name,
    at_partner,
    at_unnamed_database,
    skip_if_exists,
    skip_wait,
    statement_cursor,
)
from dmdelta.ddl.tokens import Cursor, Token, split_at_commas, tokenize
from dmdelta.model.mysql_sql import quoted_name
from dmdelta.model.schema import TableName


@dataclass(frozen=True, slots=True)
class Names:
    """The names in the rewritten statement.

    Attributes:
        default_schema: of the statement's session.
        table, database: the new names.
    """

    default_schema: str
    table: Callable[[TableName], TableName]
    database: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a statement's text, and its replacement.

    Attributes:
        resolved: the name does not depend on the default schema.
    """

    begin: int
    end: int
    text: str
    resolved: bool = False


def rewritten(sql: str, names: Names) -> str:
    """The statement with its tables and databases under their new names, qualified. Never raises."""
    body = _body(sql)
    return replaced(body, name_places(body, names))


def name_places(sql: str, names: Names, *, unqualified: bool = False) -> list[Place]:
    """The places of a statement's tables and databases, with their new names. Never raises.

    Args:
        unqualified: only names that depend on the default schema.
    """
    places = _places(_Reader(statement_cursor(sql), names))
    return [place for place in places if not (unqualified and place.resolved)]


def replaced(sql: str, places: Iterable[Place]) -> str:
    """The text with other parts at these places."""
    parts, at = [], 0
    for place in sorted(places, key=lambda place: place.begin):
        parts += [sql[at : place.begin], place.text]
        at = place.end
    return "".join([*parts, sql[at:]])


def _body(sql: str) -> str:
    """Without parts that only concern the source: MariaDB's `SET STATEMENT … FOR`, and the START TRANSACTION that MySQL
    logs with a CREATE TABLE … SELECT, whose rows follow.
    """
    tokens = tokenize(sql)
    if [token.keyword for token in tokens[-2:]] == ["START", "TRANSACTION"]:
        return sql[: tokens[-2].begin].rstrip()
    if not Cursor(tokens).accept("SET", "STATEMENT"):
        return sql
    marks = [token for token in tokens if token.keyword == "FOR"]
    return sql[marks[0].end :].lstrip() if marks else sql


class _Reader:
    """A cursor that records the names it consumes."""

    def __init__(self, cursor: Cursor, names: Names) -> None:
        self.cursor = cursor
        self._names = names

    def table(self, cursor: Cursor | None = None) -> Iterator[Place]:
        """Consume a table name."""
        cursor = cursor or self.cursor
        skip_if_exists(cursor)
        start = cursor.position
        name = cursor.table_name(self._names.default_schema)
        if name is not None:
            yield _replaced(cursor.since(start), quoted_name(*self._names.table(name)))

    def database(self, verb: str) -> Iterator[Place]:
        """Consume a database name; that of the default database is inserted where the statement has none."""
        skip_if_exists(self.cursor)
        if at_unnamed_database(self.cursor, verb):
            begin = self.cursor.rest()[0].begin
            yield Place(begin, begin, f"{quoted_name(self._names.database(self._names.default_schema))} ")
            return
        start = self.cursor.position
        name = self.cursor.identifier()
        if name is not None:
            yield _replaced(self.cursor.since(start), quoted_name(self._names.database(name)))


def _replaced(name: Sequence[Token], text: str) -> Place:
    return Place(name[0].begin, name[-1].end, text, resolved=len(name) > 1 and name[0].keyword != ".")


def _places(reader: _Reader) -> Iterator[Place]:
    cursor = reader.cursor
    verb = cursor.accept_any("CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE")
    if verb == "TRUNCATE":
        cursor.accept("TABLE")
        yield from reader.table()
    elif verb == "RENAME":
        if cursor.accept_any("TABLE", "TABLES"):
            skip_if_exists(cursor)
            for part in split_at_commas(cursor.rest()):
                yield from _rename(reader, Cursor(part))
    elif verb:
        cursor.accept("OR", "REPLACE")
        accept_modifiers(cursor)
        yield from _object(reader, verb)


def _rename(reader: _Reader, pair: Cursor) -> Iterator[Place]:
    yield from reader.table(pair)
    while not pair.ended and not pair.accept("TO"):
        pair.take()
    yield from reader.table(pair)


def _object(reader: _Reader, verb: str) -> Iterator[Place]:
    cursor = reader.cursor
    kind = cursor.accept_any("TABLE", "TABLES", "INDEX", "DATABASE", "SCHEMA")
    if kind in ("DATABASE", "SCHEMA"):
        yield from reader.database(verb)
    elif kind == "INDEX":
        while not cursor.ended and not cursor.accept("ON"):
            cursor.take()
        yield from reader.table()
    elif kind and verb == "DROP":
        skip_if_exists(cursor)
        for part in split_at_commas(cursor.rest()):
            yield from reader.table(Cursor(part))
    elif kind:
        yield from reader.table()
        yield from _inside(reader, cursor.rest(), creating=verb == "CREATE")


def _inside(reader: _Reader, tokens: Sequence[Token], *, creating: bool) -> Iterator[Place]:
    """Names after the table's own: in LIKE, REFERENCES and RENAME clauses, and in actions that move partitions."""
    for number, token in enumerate(tokens):
        before = tokens[number - 1].keyword if number else ""
        if token.keyword == "REFERENCES":
            # Without a schema it is a table in the schema of the referencing table.
            yield from (replace(place, resolved=True) for place in reader.table(Cursor(list(tokens[number + 1 :]))))
        elif creating and token.keyword == "LIKE" and before in ("", "("):
            yield from reader.table(Cursor(list(tokens[number + 1 :])))
    if creating:
        return
    actions = Cursor(list(tokens))
    skip_wait(actions)
    for part in split_at_commas(actions.rest()):
        action = Cursor(part)
        if at_new_name(action) or at_partner(action):
            yield from reader.table(action)
