"""Row events as mysql-replication reads them, in plain records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dmdelta.model.schema import TableName

Place = tuple[str, int]
"""(binlog file, byte offset of the event's start)."""


@dataclass(frozen=True, slots=True)
class LoggedColumn:
    """A column of a table map.

    Attributes:
        kind: MySQL's number of the type on the wire (`pymysqlreplication.constants.FIELD_TYPE`).
        named: the log tells names, signs and character sets; else `name` is the column's place, `@1` for the first.
        encoding: mysql-replication's name of the character set; None: none, or not in the log.
        members: of an ENUM or SET.
        fraction: digits of fractional seconds.
    """

    name: str
    kind: int
    named: bool
    unsigned: bool = False
    encoding: str | None = None
    members: tuple[str, ...] | None = None
    fraction: int = 0


@dataclass(frozen=True, slots=True)
class LoggedImage:
    """A row image: the values of all columns by name.

    Attributes:
        values: None for NULL, for what is not in the image, and for what Python cannot hold.
        nones: why a value is None (`pymysqlreplication.constants.NONE_SOURCE`).
    """

    values: Mapping[str, Any]
    nones: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LoggedRow:
    """One row of an event."""

    before: LoggedImage | None
    after: LoggedImage | None


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event that changes rows.

    Attributes:
        table, op: None for an event that holds others (a compressed transaction).
        gtid: of its transaction; None: it has none.
        unread_gtid: why the transaction's GTID is not known; None: it is.
        columns: of the table, in its order.
        rows: None if they could not be read.
        unread: why not; None if they could.
    """

    place: Place
    table: TableName | None
    op: str | None
    gtid: str | None
    unread_gtid: str | None = None
    columns: Sequence[LoggedColumn] = ()
    rows: Sequence[LoggedRow] | None = None
    unread: str | None = None
