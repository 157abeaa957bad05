"""Ad-hoc snapshots in the order of the log: which rows of the target theirs replace, where, and what waits for them."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from dmdelta.model.mysql_sql import quoted_name, text
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.rules import SourceRules


@dataclass(frozen=True, slots=True)
class Reload:
    """A table whose rows an ad-hoc snapshot replaces.

    Attributes:
        epoch: of the rows in bronze: below 0, and below that of every earlier ad-hoc snapshot.
        position: where the log continues after the rows.
        safe_until: changes before it may already be in the rows; None: the rows are as of `position`.
    """

    table: TableName
    epoch: int
    position: Position
    safe_until: Position | None = None


@dataclass(frozen=True, slots=True)
class AdHocState:
    """The ad-hoc snapshots of a source.

    Attributes:
        awaited: the tables that a snapshot is to read, or is reading.
        planning: a snapshot is about to start: at which position is not known yet.
        begin: where the log of the snapshot in progress begins; None: there is none.
        reading: the tables of the snapshot in progress.
        reloads: what finished snapshots have read, oldest first.
    """

    awaited: frozenset[TableName] = frozenset()
    planning: bool = False
    begin: Position | None = None
    reading: frozenset[TableName] = frozenset()
    reloads: tuple[Reload, ...] = ()

    def must_wait(self, at: Position, changed: Collection[TableName] | None, *, ordered: bool) -> bool:
        """Whether the log from `at` on must wait for a snapshot.

        Its rows have the structure that the tables had before their next statement. If the changes of different tables
        depend on each other, no log after the snapshot's begin may precede its rows.

        Args:
            changed: the tables that the statement at `at` names; None: there is no statement.
            ordered: the changes of different tables depend on each other.
        """
        if self.planning:
            return ordered or _concerns(changed, self.awaited)
        if self.begin is None or at < self.begin:
            return False
        return ordered or _concerns(changed, self.reading)

    def due(self, at: Position, done: Mapping[TableName, int]) -> list[Reload]:
        """The reloads that precede the log from `at` on, of the oldest snapshot. A later one replaces an earlier one.

        Args:
            done: the epoch of the newest snapshot that is in the target, by table.
        """
        left = {one.table: one for one in self.reloads if one.position <= at and not is_done(one, done)}
        oldest = max((one.epoch for one in left.values()), default=0)
        return [one for one in left.values() if one.epoch == oldest]

    def left(self, done: Mapping[TableName, int]) -> list[Reload]:
        """The reloads that the target does not have."""
        return [one for one in self.reloads if not is_done(one, done)]

    def only(self, table: TableName) -> "AdHocState":
        """The state with the reloads of one table."""
        return replace(self, reloads=tuple(one for one in self.reloads if one.table == table))

    def without(self, tables: Collection[TableName]) -> "AdHocState":
        """The state without the reloads of some tables."""
        return replace(self, reloads=tuple(one for one in self.reloads if one.table not in tables))

    def overlaps_before(self, epoch: int) -> bool:
        """Whether the rows of a reload may be newer than log of an earlier epoch."""
        return any(one.safe_until is not None and one.safe_until.epoch < epoch for one in self.reloads)

    def in_epoch(self, epoch: int, rest: Callable[[Position, int], Position | None]) -> "AdHocState":
        """The state for the log of an epoch, which has the rest of an overlap that began in an earlier one.

        Args:
            rest: the end of an overlap as a position in the log of an epoch; None: an earlier log has passed it.
        """
        reloads = (
            one
            if one.safe_until is None or one.safe_until.epoch >= epoch
            else replace(one, safe_until=rest(one.safe_until, epoch))
            for one in self.reloads
        )
        return replace(self, reloads=tuple(reloads))

    def is_in_doubt(self, table: TableName, begin: Position, done: Mapping[TableName, int]) -> bool:
        """Whether changes of a table from `begin` on need safe mode.

        Until its rows are replaced, the target may have others than the log says; after that, the rows may be newer.
        """
        if table in self.awaited:
            return True
        own = [one for one in self.reloads if one.table == table]
        return any(
            not is_done(one, done) or (one.safe_until is not None and begin < one.safe_until and one.position <= begin)
            for one in own
        )

    def next_place(self, begin: Position, end: Position, done: Mapping[TableName, int]) -> Position:
        """The first position after `begin` where a snapshot precedes the log; at most `end`."""
        places = {one.position for one in self.left(done)} | ({self.begin} if self.begin is not None else set())
        return min((at for at in places if begin < at < end), default=end)


def is_done(reload: Reload, done: Mapping[TableName, int]) -> bool:
    """Whether the target has the rows of a snapshot, or of a later one."""
    return done.get(reload.table, 0) <= reload.epoch


def _concerns(changed: Collection[TableName] | None, tables: Collection[TableName]) -> bool:
    """Whether a statement may change one of the tables; one that names none may change any."""
    return changed is not None and bool(tables) and (not changed or not set(changed).isdisjoint(tables))


def own_rows(rules: SourceRules, name: TableName, others: Collection[TableName], sources: int) -> str | None:
    """The condition (SQL) that selects a source table's rows; '' for all rows, None if nothing identifies them.

    Args:
        others: the source's other tables.
        sources: number of the task's sources.
    """
    route = rules.route(*name)
    if not route.merged:
        return ""
    same = [rules.route(*other).extracted for other in others if rules.route(*other).name == route.name]
    if sources > 1 or not route.extracted or route.extracted in same:
        return None
    return " AND ".join(
        f"CONVERT({quoted_name(column)} USING utf8mb4) = {text(value)} COLLATE utf8mb4_bin"
        for column, value in route.extracted
    )
