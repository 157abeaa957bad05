"""Checks that a table still has the structure with which its snapshot was planned, which decodes its rows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dmdelta.errors import StructureChanged
from dmdelta.model.mysql_sql import quoted_name
from dmdelta.model.schema import Column, TableSchema
from dmdelta.source.catalog import read_structure
from dmdelta.source.connection import START_OVER, query

if TYPE_CHECKING:
    from pymysql.connections import Connection

_SIZED = ("binary", "bit")
"""Types whose values depend on the length."""


def hold_structure(
    connection: "Connection[Any]", observer: "Connection[Any]", planned: TableSchema, *, exact: bool
) -> None:
    """Check a table's structure, which then stays as it is until the transaction of `connection` ends.

    Args:
        observer: a connection without a snapshot from before: MySQL 8 reads information_schema as of a snapshot.
        exact: the log of the table continues where its rows are read, not where the snapshot was planned.

    Raises:
        StructureChanged: rows would be decoded in another way than they are stored, or silver would not follow the
            statement that changed the table.
        SourceUnavailable, SourceError: the server does not answer, or the table does not exist.
    """
    # The statement reads nothing, but takes the metadata lock of the table, for which every ALTER TABLE waits.
    query(connection, f"SELECT 1 FROM {quoted_name(*planned.name)} LIMIT 0")
    current = read_structure(observer, planned.name)
    changed = plan_changed(planned, current.columns) + plan_unfollowed(planned, current, exact=exact)
    if changed:
        raise StructureChanged(
            f"{planned} was changed after its snapshot was planned: {', '.join(changed)}",
            hint=f"the rows that are left do not fit those that were read: {START_OVER}",
        )


def plan_changed(planned: TableSchema, current: Sequence[Column]) -> list[str]:
    """The planned columns whose values are not what they were planned to be; empty if all are. For other columns of the
    table, see `plan_unfollowed`.
    """
    now = {column.name: (place, column) for place, column in enumerate(current)}
    changed: list[str] = []
    last = -1
    for column in planned.columns:
        place, found = now.get(column.name, (-1, None))
        # A column in another place may be another one under this name: RENAME COLUMN a TO b, RENAME COLUMN b TO a.
        if found is None or place < last or not _is_alike(column, found, key=column.name in planned.primary_key):
            changed.append(column.name)
        last = max(last, place)
    return changed


def plan_unfollowed(planned: TableSchema, current: TableSchema, *, exact: bool) -> list[str]:
    """What is new in the structure of a table, and of which silver would not learn in time.

    The log after the plan has a statement that adds a column. The log after an exact read does not have it. With
    another key, the log that overlaps the rows could not be applied to them.
    """
    known = {column.name for column in planned.columns}
    added = [f"{column.name} (new)" for column in current.columns if column.name not in known] if exact else []
    return [*added, "its key"] if current.primary_key != planned.primary_key else added


def _is_alike(planned: Column, now: Column, *, key: bool) -> bool:
    """Whether values have the same form and meaning; the chunks of a key also depend on its order."""
    if key and None not in (planned.collation, now.collation) and planned.collation != now.collation:
        return False
    return _meaning(planned) == _meaning(now)


def _meaning(column: Column) -> tuple[object, ...]:
    length = column.length if column.type in _SIZED else 0
    return (column.type, column.unsigned, length, column.precision, column.scale, column.charset, column.members)
