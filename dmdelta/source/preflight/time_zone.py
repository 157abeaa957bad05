"""Effects of a server's time zone: only on virtual columns, which a full load reads in its own session, in UTC.

It affects nothing else: a TIMESTAMP is an instant both in the log and in a session in UTC, a DATETIME has no zone, a
default that depends on the zone stops the task where the column is added, and `--start-time` has its own zone.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from dmdelta.model.mysql_sql import quoted_name
from dmdelta.model.schema import SYSTEM_SCHEMAS
from dmdelta.source.connection import query
from dmdelta.source.preflight.finding import Finding, Level, listed

if TYPE_CHECKING:
    from pymysql.connections import Connection

_UTC = frozenset({"utc", "etc/utc", "+00:00", "-00:00"})
"""Not GMT, which may denote London's winter time."""
_COLUMNS = """
SELECT table_schema, table_name, column_name, data_type, generation_expression FROM information_schema.columns
WHERE (extra LIKE '%%VIRTUAL GENERATED%%' OR data_type = 'timestamp') AND table_schema NOT IN %s
ORDER BY table_schema, table_name, ordinal_position
"""
_CONVERTS = re.compile(r"\b(from_unixtime|unix_timestamp)\(", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Zone:
    """The time zone in which a server's sessions start.

    Attributes:
        virtual: virtual columns (schema.table.column) whose values depend on the zone of the session that reads them.
    """

    name: str
    virtual: Sequence[str] = ()


def read_zone(connection: "Connection[Any]", wanted: Callable[[str, str], bool]) -> Zone:
    """Query the server; `wanted(schema, table)`: it is selected.

    Raises:
        SourceUnavailable, SourceError: the server does not answer.
    """
    named, of_system = query(connection, "SELECT @@global.time_zone, @@system_time_zone")[0]
    rows = [row for row in query(connection, _COLUMNS, (SYSTEM_SCHEMAS,)) if wanted(row[0], row[1])]
    tables = groupby(rows, key=lambda row: f"{row[0]}.{row[1]}")
    virtual = [f"{table}.{column}" for table, listed in tables for column in zoned_columns([row[2:] for row in listed])]
    return Zone(str(of_system if named == "SYSTEM" else named), virtual)


def zoned_columns(columns: Iterable[Sequence[Any]]) -> list[str]:
    """Of one table's TIMESTAMP and virtual columns, those whose value depends on the session's zone.

    Args:
        columns: (name, type, expression or None), in table order.
    """
    instants, zoned = list[str](), list[str]()
    for name, kind, expression in columns:
        if not expression:
            instants.append(name)
            continue
        rest = str(expression)
        for instant in instants:
            rest = rest.replace(f"unix_timestamp({quoted_name(instant)})", "")  # the same number in every zone
        converted = any(quoted_name(other) in rest for other in (*instants, *zoned))
        if converted or kind == "timestamp" or _CONVERTS.search(rest):
            zoned.append(name)
    return zoned


def zone_finding(zone: Zone, *, loads: bool) -> Finding:
    """Evaluate the zone; `loads`: the tables are to be read by a full load, too."""
    if not (loads and zone.virtual) or zone.name.lower() in _UTC:
        message = f"{zone.name}: a TIMESTAMP is the same instant in every zone, a DATETIME has none"
        return Finding("time_zone", Level.PASS, message)
    message = (
        f"{zone.name}: the values of virtual columns depend on the session's zone: {listed(zone.virtual)}: the full "
        "load reads them in UTC, the log has them in the writer's zone"
    )
    return Finding("time_zone", Level.WARN, message, "make these columns STORED, or run the server in UTC")
