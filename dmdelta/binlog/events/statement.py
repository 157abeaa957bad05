"""Classifies a statement in a query event: transaction control, structure, rows, or no effect.

Every statement is classified by its leading words; one that matches no list is an error, never skipped. Leading
comments are ignored; the content of version comments (`/*!40000 … */`) is not.
"""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from dmdelta.binlog.events.xa import parse_xid
from dmdelta.errors import UnsupportedEvent
from dmdelta.model.mysql_sql import LINE_COMMENT, WORD


class StatementTarget(Protocol):
    """A table, or with `table` None a database, that a DDL statement changes.

    `op` starts with `truncate` for a table that is truncated.
    """

    @property
    def op(self) -> str: ...
    @property
    def schema(self) -> str: ...
    @property
    def table(self) -> str | None: ...


class StatementKind(Enum):
    """The effect of a statement."""

    BEGIN = "begin"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    SAVEPOINT = "savepoint"
    ROLLBACK_TO = "rollback to"
    XA_START = "xa start"
    XA_END = "xa end"
    XA_PREPARE = "xa prepare"
    XA_COMMIT = "xa commit"
    XA_ROLLBACK = "xa rollback"
    ADMIN = "admin"
    """Changes no table's rows or structure."""
    DDL = "ddl"
    """Changes the structure of tables, or truncates or drops them."""
    DML = "dml"
    """Changes rows: statement format."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A classified statement.

    Attributes:
        xid: the canonical identifier of an XA verb.
        savepoint: the name in SAVEPOINT and ROLLBACK TO, in lower case: names of any case are equal.
    """

    kind: StatementKind
    xid: str | None = None
    savepoint: str | None = None


_FREQUENT = {"BEGIN": Statement(StatementKind.BEGIN), "COMMIT": Statement(StatementKind.COMMIT)}
_SPACE = rf"(?:\s|/\*(?!M?!).*?\*/|{LINE_COMMENT})"
_LEADING = re.compile(rf"{_SPACE}+", re.DOTALL)
_COMMENT = re.compile(r"/\*(?!M?!).*?\*/", re.DOTALL)
_MARK = re.compile(r"/\*M?!\d*|\*/")
"""The start and end of a version comment."""
_SET_FOR = re.compile(r"SET\s+STATEMENT\s.*?\sFOR\s+", re.DOTALL | re.IGNORECASE)
_HEAD = 2000
"""Characters that are examined; statements can be megabytes long."""

_WORD = re.compile(r"[A-Za-z_]+")
_XA = re.compile(r"XA\s+(START|BEGIN|END|PREPARE|COMMIT|ROLLBACK)\b\s*(.*)", re.DOTALL | re.IGNORECASE)
_XA_KINDS = {
    "START": StatementKind.XA_START,
    "BEGIN": StatementKind.XA_START,
    "END": StatementKind.XA_END,
    "PREPARE": StatementKind.XA_PREPARE,
    "COMMIT": StatementKind.XA_COMMIT,
    "ROLLBACK": StatementKind.XA_ROLLBACK,
}
_CONTROL = (
    (re.compile(r"BEGIN\b|START\s+TRANSACTION\b", re.IGNORECASE), StatementKind.BEGIN),
    (re.compile(r"COMMIT\b", re.IGNORECASE), StatementKind.COMMIT),
    (re.compile(r"ROLLBACK\b(?!\s+(?:WORK\s+)?TO\b)", re.IGNORECASE), StatementKind.ROLLBACK),
    (re.compile(r"RELEASE\s+SAVEPOINT\b", re.IGNORECASE), StatementKind.ADMIN),
)
_SAVEPOINT = re.compile(r"(ROLLBACK\s+(?:WORK\s+)?TO(?:\s+SAVEPOINT)?|SAVEPOINT)\b\s*(.*)", re.DOTALL | re.IGNORECASE)
_QUOTED = re.compile(r"([`\"])(.*)\1", re.DOTALL)
_ADMIN_OBJECTS = (
    "AGGREGATE|CLUSTERING|COMPONENT|EVENT|FUNCTION|INSTANCE|JSON|LIBRARY|LOGFILE|MASKING|MATERIALIZED|PACKAGE|PLUGIN"
    "|PREPARE|PROCEDURE|RESOURCE|ROLE|SERVER|SPATIAL\\s+REFERENCE|TABLESPACE|TRIGGER|UNDO|USER|VIEW"
)
_ADMIN = re.compile(
    r"(?:GRANT|REVOKE|ANALYZE|OPTIMIZE|REPAIR|CHECK|CHECKSUM|FLUSH|RESET|CACHE|LOAD\s+INDEX|KILL|INSTALL|UNINSTALL|SET"
    r"|RENAME\s+USER|SHUTDOWN|RESTART|CLONE|CHANGE|START\s+(?:SLAVE|REPLICA|GROUP_REPLICATION)"
    r"|STOP\s+(?:SLAVE|REPLICA|GROUP_REPLICATION)|LOCK\s+(?:TABLES?|INSTANCE)|UNLOCK|USE|DO\s+0)\b"
    rf"|(?:CREATE|ALTER|DROP)\s+(?:OR\s+REPLACE\s+)?"
    rf"(?:(?:ALGORITHM\s*=\s*\w+|DEFINER\s*=\s*(?:`[^`]*`|'[^']*'|\"[^\"]*\"|{WORD})(?:\s*\(\s*\))?"
    r"(?:\s*@\s*(?:`[^`]*`|'[^']*'|\"[^\"]*\"|[\w.%$]+))?|SQL\s+SECURITY\s+\w+)\s+)*"
    rf"(?:{_ADMIN_OBJECTS})\b",
    re.IGNORECASE,
)
_TEMPORARY = re.compile(r"(?:CREATE\s+(?:OR\s+REPLACE\s+)?|DROP\s+)TEMPORARY\s+(?:TABLES?|SEQUENCE)\b", re.IGNORECASE)
_DDL = re.compile(
    r"(?:CREATE|ALTER|DROP)\s+(?:OR\s+REPLACE\s+)?(?:(?:ONLINE|OFFLINE|IGNORE|UNIQUE|FULLTEXT|SPATIAL|VECTOR|EXTERNAL)\s+)*"
    r"(?:TABLES?|INDEX|KEY|DATABASE|SCHEMA|SEQUENCE)\b|TRUNCATE\b|RENAME\s+TABLES?\b",
    re.IGNORECASE,
)
_DML = re.compile(
    r"(?:INSERT|UPDATE|DELETE|REPLACE|LOAD|SELECT|WITH|CALL|DO|TABLE|VALUES|IMPORT|HANDLER)\b", re.IGNORECASE
)


def classify(sql: str) -> Statement:
    """Classify a statement of a binlog.

    Raises:
        UnsupportedEvent: it matches no list.
    """
    known = _FREQUENT.get(sql)
    if known is not None:
        return known
    text = significant(sql)
    if not text:
        return Statement(StatementKind.ADMIN)
    for pattern, kind in _CONTROL:
        if pattern.match(text):
            return Statement(kind)
    verb = _XA.match(text)
    if verb is not None:
        return Statement(_XA_KINDS[verb.group(1).upper()], parse_xid(verb.group(2)))
    savepoint = _SAVEPOINT.match(text)
    if savepoint is not None:
        kind = StatementKind.SAVEPOINT if savepoint.group(1)[0] in "Ss" else StatementKind.ROLLBACK_TO
        return Statement(kind, savepoint=_unquoted(savepoint.group(2)).lower())
    if _DDL.match(text):
        return Statement(StatementKind.DDL)
    if _TEMPORARY.match(text) or _ADMIN.match(text):
        return Statement(StatementKind.ADMIN)
    if _DML.match(text):
        return Statement(StatementKind.DML)
    word = _WORD.match(text)
    raise UnsupportedEvent(
        f"a statement that starts with {word.group() if word else 'no word'} is unknown",
        hint="report it to the project; if it changes no rows, skip it with `dmdelta binlog skip`",
    )


def significant(sql: str) -> str:
    """The start of a statement without comments and with the content of version comments."""
    text = _strip(_strip(sql)[:_HEAD])
    if "/*" in text:
        text = _strip(_MARK.sub(" ", _COMMENT.sub(" ", text)))
    match = _SET_FOR.match(text)
    return _strip(text[match.end() :]) if match else text


def _unquoted(name: str) -> str:
    quoted = _QUOTED.fullmatch(name)
    return quoted.group(2).replace(quoted.group(1) * 2, quoted.group(1)) if quoted else name


def _strip(text: str) -> str:
    match = _LEADING.match(text)
    return (text[match.end() :] if match else text).rstrip("; \t\r\n")
