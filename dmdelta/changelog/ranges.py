"""Ranges of bronze as SQL predicates. Literals, so that Delta can skip files by statistics."""

from dataclasses import dataclass

from dmdelta.model.position import Position
from dmdelta.model.spark_sql import literal

IS_CHANGE = "op IN ('read', 'insert', 'update', 'delete')"
"""Rows that are row changes, as SQL; excludes structures, statements and positions."""


@dataclass(frozen=True, slots=True)
class XaGroup:
    """The rows of one prepared XA transaction that was committed: of one epoch, after < seq ≤ until.

    Attributes:
        at: (epoch, seq) of the commit, where the rows take effect.
        epoch: of the rows; at most that of the commit.
        after: where the previous transaction with the same xid ended; None: the epoch has none.
        until: where the commit is in the rows' epoch; None: the epoch ends before it.
    """

    xid: str
    at: tuple[int, int]
    epoch: int
    after: int | None
    until: int | None


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
    parts = [f"xid = {literal(group.xid)}", f"epoch = {group.epoch}"]
    parts += [f"seq > {group.after}"] if group.after is not None else []
    parts += [f"seq <= {group.until}"] if group.until is not None else []
    return "(" + " AND ".join(parts) + ")"


def row_changes(begin: Position, end: Position, groups: tuple[XaGroup, ...]) -> str:
    """The row changes that take effect in a range: outside XA, and prepared earlier but committed in it."""
    plain = f"({within(begin, end)} AND xid IS NULL)"
    effective = " OR ".join([plain, *(in_group(group) for group in groups)])
    return f"{IS_CHANGE} AND ({effective})"
