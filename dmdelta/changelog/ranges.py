"""Ranges of bronze as SQL predicates. Literals, so that Delta can skip files by statistics."""

from dataclasses import dataclass

from dmdelta.model.position import Position
from dmdelta.model.spark_sql import literal

IS_CHANGE = "op IN ('read', 'insert', 'update', 'delete')"
"""Rows that are row changes, as SQL; excludes structures, statements and positions."""


@dataclass(frozen=True, slots=True)
class XaGroup:
    """The rows of one prepared XA transaction that was committed: later than `after`, not later than `until`.

    Attributes:
        after: (epoch, seq) of the row that ended the previous transaction with the same xid, None if there was none.
        until: (epoch, seq) of the commit.
    """

    xid: str
    after: tuple[int, int] | None
    until: tuple[int, int]


def within(begin: Position, end: Position) -> str:
    """Rows with begin ≤ row < end."""
    if begin.epoch == end.epoch:
        return f"epoch = {begin.epoch} AND seq >= {begin.seq} AND seq < {end.seq}"
    return (
        f"epoch BETWEEN {begin.epoch} AND {end.epoch} AND (epoch > {begin.epoch} OR seq >= {begin.seq}) "
        f"AND (epoch < {end.epoch} OR seq < {end.seq})"
    )


def before(end: Position) -> str:
    """Rows with row < end."""
    return f"(epoch < {end.epoch} OR (epoch = {end.epoch} AND seq < {end.seq}))"


def not_before(begin: Position) -> str:
    """Rows with begin ≤ row."""
    return f"NOT {before(begin)}"


def of_source(source_id: str) -> str:
    return f"source_id = {literal(source_id)}"


def of_table(schema: str, table: str) -> str:
    return f"schema_name = {literal(schema)} AND table_name = {literal(table)}"


def in_group(group: XaGroup) -> str:
    """The rows that were prepared in an XA transaction."""
    epoch, seq = group.until
    parts = [f"xid = {literal(group.xid)}", f"(epoch < {epoch} OR (epoch = {epoch} AND seq <= {seq}))"]
    if group.after is not None:
        epoch, seq = group.after
        parts.append(f"(epoch > {epoch} OR (epoch = {epoch} AND seq > {seq}))")
    return "(" + " AND ".join(parts) + ")"


def row_changes(begin: Position, end: Position, groups: tuple[XaGroup, ...]) -> str:
    """The row changes that take effect in a range: outside XA, and prepared earlier but committed in it."""
    plain = f"({within(begin, end)} AND xid IS NULL)"
    effective = " OR ".join([plain, *(in_group(group) for group in groups)])
    return f"{IS_CHANGE} AND ({effective})"
