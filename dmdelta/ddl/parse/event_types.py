"""DM's names (`model.events`) for the effects of a DDL statement, one for each action of an ALTER TABLE.

The log contains no defaults, no AUTO_INCREMENT and no keys but the primary one, so a MODIFY that removes one of these
is an `alter table` here where DM, with its own copy of the structure, has `modify default value`, `remove auto
increment` or `drop unique key`. Source: pingcap/tiflow, dm/syncer/ddl.go.
"""

from collections.abc import Iterator
from itertools import pairwise

from dmdelta.ddl.parse.modified_column import modify_event
from dmdelta.ddl.parse.statements import skip_wait, statement_cursor
from dmdelta.ddl.tokens import Cursor, Kind, Token, split_at_commas
from dmdelta.model.schema import TableSchema

_OBJECTS = ("TABLE", "TABLES", "INDEX", "VIEW", "DATABASE", "SCHEMA")
_OTHER_OBJECTS = (
    *("FUNCTION", "PROCEDURE", "TRIGGER", "EVENT", "USER", "ROLE", "SERVER", "SEQUENCE", "TABLESPACE", "PACKAGE"),
    *("LOGFILE", "INSTANCE", "RESOURCE", "SPATIAL", "LIBRARY", "CATALOG"),
)
_ON_OBJECTS = {
    "DATABASE": ("create database", "alter database", "drop database"),
    "TABLE": ("create table", "alter table", "drop table"),
    "INDEX": ("create index", "", "drop index"),
    "VIEW": ("create view", "create view", "drop view"),
}
_VERBS = ("CREATE", "ALTER", "DROP")
_PARTITIONS = {
    ("ADD", "PARTITION"): "add table partition",
    ("DROP", "PARTITION"): "drop table partition",
    ("TRUNCATE", "PARTITION"): "truncate table partition",
    ("REBUILD", "PARTITION"): "rebuild table partition",
    ("REORGANIZE", "PARTITION"): "reorganize table partition",
    ("COALESCE", "PARTITION"): "coalesce table partition",
    ("EXCHANGE", "PARTITION"): "exchange table partition",
    ("REMOVE", "PARTITIONING"): "remove table partitioning",
    ("PARTITION", "BY"): "alter table partitioning",
}
_KEY_WORDS = ("INDEX", "KEY", "UNIQUE", "FULLTEXT", "VECTOR", "CHECK", "CONSTRAINT")


def ddl_events(sql: str, before: TableSchema | None = None) -> frozenset[str]:
    """The events of a statement, by DM's names; empty if DM has no name for it. Never raises.

    Args:
        before: the structure before an ALTER TABLE, which distinguishes the events of MODIFY and CHANGE: without it
            they are `modify column`.
    """
    cursor = statement_cursor(sql)
    verb = cursor.accept_any(*_VERBS, "RENAME", "TRUNCATE")
    if verb == "TRUNCATE":
        return frozenset({"truncate table"})
    if verb == "RENAME":
        return frozenset({"rename table"} if cursor.accept_any("TABLE", "TABLES") else ())
    kind = _object(cursor) if verb else ""
    if kind == "TABLE" and verb == "ALTER":
        return frozenset(_alter_table(cursor, before))
    name = _ON_OBJECTS[kind][_VERBS.index(verb)] if kind else ""
    return frozenset({name} if name else ())


def _object(cursor: Cursor) -> str:
    """Consume the words between a verb and its object, and the object; '' for one without events."""
    spatial = cursor.accept("SPATIAL", "INDEX")
    while not spatial and not cursor.ended and cursor.peek() not in _OTHER_OBJECTS:
        if kind := cursor.accept_any(*_OBJECTS):
            return {"TABLES": "TABLE", "SCHEMA": "DATABASE"}.get(kind, kind)
        cursor.take()
    return "INDEX" if spatial else ""


def _alter_table(cursor: Cursor, before: TableSchema | None) -> Iterator[str]:
    cursor.accept("IF", "EXISTS")
    cursor.table_name("")
    skip_wait(cursor)
    for part in split_at_commas(cursor.rest()):
        # ALGORITHM and LOCK specify how the table is altered, not what changes.
        if part[0].keyword not in ("ALGORITHM", "LOCK"):
            yield from _action(part, before)
        words = tuple(token.keyword for token in part[:2])
        if words in _PARTITIONS or words == ("ORDER", "BY"):
            return  # followed by a list of names, not by further actions


def _action(tokens: list[Token], before: TableSchema | None) -> Iterator[str]:
    cursor = Cursor(tokens)
    if event := _PARTITIONS.get((cursor.peek(), cursor.peek(1))):
        yield event
        return
    verb = cursor.accept_any("ADD", "MODIFY", "CHANGE", "DROP", "RENAME", "ALTER", "CONVERT", "ORDER", "FORCE")
    if verb == "ADD":
        yield _added(cursor)
    elif verb in ("MODIFY", "CHANGE"):
        yield modify_event(cursor, before, renames=verb == "CHANGE")
    elif verb == "DROP":
        yield _dropped(cursor)
    elif verb == "RENAME":
        yield {"COLUMN": "rename column", "INDEX": "rename index", "KEY": "rename index"}.get(
            cursor.peek(), "rename table"
        )
    elif verb == "ALTER":
        yield _altered(cursor)
    elif verb == "CONVERT":
        # MariaDB's CONVERT PARTITION and CONVERT TABLE have no name in DM.
        yield "alter table" if cursor.peek() in ("PARTITION", "TABLE") else "modify charset"
    else:
        yield from _options(tokens)


def _added(cursor: Cursor) -> str:
    words = (cursor.peek(), cursor.peek(1))
    if cursor.accept("CONSTRAINT") and cursor.peek() not in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
        cursor.identifier()
    if cursor.accept("PRIMARY"):
        return "add primary key"
    if cursor.accept("FOREIGN"):
        return "add foreign key"
    if words[0] in _KEY_WORDS or words in (("SPATIAL", "INDEX"), ("SPATIAL", "KEY")):
        return "modify constraint"
    # MariaDB's PERIOD FOR and SYSTEM VERSIONING.
    return "alter table" if words in (("PERIOD", "FOR"), ("SYSTEM", "VERSIONING")) else "add column"


def _dropped(cursor: Cursor) -> str:
    if cursor.accept("PRIMARY"):
        return "drop primary key"
    if cursor.accept("FOREIGN"):
        return "drop foreign key"
    if cursor.accept_any("INDEX", "KEY"):
        cursor.accept("IF", "EXISTS")
        name = cursor.identifier()
        return "drop primary key" if name is not None and name.upper() == "PRIMARY" else "drop index"
    if cursor.accept_any("CONSTRAINT", "CHECK") or cursor.accept("PERIOD", "FOR"):
        return "alter table"
    return "alter table" if cursor.accept("SYSTEM", "VERSIONING") else "drop column"


def _altered(cursor: Cursor) -> str:
    """`ALTER [COLUMN] c SET | DROP DEFAULT`, `ALTER INDEX i VISIBLE`, `ALTER CHECK …`."""
    if cursor.accept_any("INDEX", "KEY"):
        return "alter index visibility"
    return "modify default value" if any(token.keyword == "DEFAULT" for token in cursor.rest()) else "alter table"


def _options(tokens: list[Token]) -> Iterator[str]:
    """Table options, which may follow each other without commas; a character set precedes its collation."""
    words = [token.keyword for token in tokens if token.kind is not Kind.STRING]
    events: set[str] = set()
    for word, following in pairwise([*words, ""]):
        if word == "CHARSET" or (word, following) == ("CHARACTER", "SET"):
            events.add("modify charset")
        elif word == "COLLATE":
            events.add("modify collation")
        elif word == "ENGINE":
            events.add("modify storage engine")
        elif word == "AUTO_INCREMENT":
            events.add("rebase auto id")
        elif word == "COMMENT":
            events.add("modify table comment")
        elif (word, following) in _PARTITIONS:
            events.add(_PARTITIONS[word, following])
    if "modify charset" in events:
        events.discard("modify collation")
    yield from events or {"alter table"}
