"""Records for the row events that mysql-replication reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dmdelta.model.gtid import GtidSet
from dmdelta.model.schema import TableName

Place = tuple[str, int]
"""(binlog file, byte offset of the event's start)."""

MAYBE_SEQUENCE = "sequence, or table of the same types without names in the log"


@dataclass(frozen=True, slots=True)
class LoggedColumn:
    """A column of a table map.

    Attributes:
        kind: MySQL's number of the type on the wire (`pymysqlreplication.constants.FIELD_TYPE`).
        named: the log has names, signs and character sets; otherwise `name` is the column's number, `@1` for the first.
        encoding: mysql-replication's name of the character set; None: none, or not in the log.
        members: the members of an ENUM or SET.
        fraction: number of digits of fractional seconds.
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
        values: None for NULL, for columns that the image omits, and for values that Python cannot represent.
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
        table, op: None for an event that contains other events (a compressed transaction).
        gtid: the transaction's GTID; None: it has none.
        unread_gtid: why the transaction's GTID is unknown; None: it is known.
        columns: the table's columns, in order.
        rows: None if they could not be read.
        unread: why the rows could not be read; None if they could.
    """

    place: Place
    table: TableName | None
    op: str | None
    gtid: str | None
    unread_gtid: str | None = None
    columns: Sequence[LoggedColumn] = ()
    rows: Sequence[LoggedRow] | None = None
    unread: str | None = None


def without_skipped(event: LoggedEvent, skipped: GtidSet) -> LoggedEvent | None:
    """The event; None if its transaction is in the set. An event is not read if its GTID, and so this, is unknown."""
    if event.unread_gtid is not None:
        return replace(event, table=None, op=None, rows=None, unread=event.unread_gtid)
    return None if event.gtid is not None and event.gtid in skipped else event
