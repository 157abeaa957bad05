"""What live reads know of a source's log: the structures up to a position, and the rows after it in memory.

Landed rows do not change, so a read continues where the one before it ended.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from dmdelta.bronze.landed_rows import landed_rows
from dmdelta.changelog.batch_memory import BatchMemory
from dmdelta.changelog.context import SourceContext
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.silver.apply.renames import Renaming, plan_renamings
from dmdelta.silver.schema.earlier import EarlierStructures
from dmdelta.silver.schema.range_profile import StructureEvent, TableEvents, tables_with_events

READ_BYTES = 256 << 20
"""The capacity of the memory of a source: more than a run's, because it holds everything that silver lacks."""
FAR_BYTES = 64 << 20
"""The log between the known past and the first row that a read needs, at most: a read looks up the events of both."""


@dataclass(frozen=True, slots=True)
class LogView:
    """The structures and statements of a log, and the events of each table from `begin` on.

    Attributes:
        earlier: the structures before `begin`.
        renamings: the statements from `begin` on that rename tables, in log order.
    """

    begin: Position
    earlier: EarlierStructures
    renamings: Sequence[Renaming] = ()
    events: Mapping[TableName, TableEvents] = field(default_factory=dict)

    def events_since(self, name: TableName, begin: Position) -> TableEvents:
        """The events of a table from a position on. Counts of rows include those between `self.begin` and it."""
        events = self.events.get(name)
        if events is None or events.last < begin:
            return TableEvents(*name, {}, begin, begin)
        structure = tuple(event for event in events.structure if event.position >= begin)
        groups = tuple(group for group in events.groups if group.at >= begin.key)
        return replace(events, structure=structure, groups=groups, first=max(events.first, begin))

    def structures_before(self, name: TableName, begin: Position) -> tuple[StructureEvent, ...]:
        """The structures and statements that determine a table's structure at a position.

        Raises:
            LakehouseError: bronze cannot be read.
        """
        found = self.events.get(name)
        between = [event for event in found.structure if event.position < begin] if found is not None else []
        return (*self.earlier.before(name), *between)


@dataclass(slots=True)
class KnownLog:
    """The log of one source, between reads.

    Attributes:
        memory: its newest rows, if they can be read without Spark.
    """

    memory: BatchMemory = field(default_factory=lambda: BatchMemory(READ_BYTES))
    _past: LogView | None = None
    _read_to: Position | None = None

    def view(self, spark: SparkSession, log: SourceContext, begin: Position, end: Position) -> LogView:
        """The log up to `end`, for tables whose rows are needed from `begin` on. Reads its rows to memory.

        Args:
            log: with `memory` as its memory.

        Raises:
            LakehouseError: bronze cannot be read.
        """
        past = self._past
        if past is None or is_far(past.begin, begin):
            past = self._restart(spark, log, begin)
        self._read(spark, log, end)
        if not self.memory.covers(past.begin, end) and self.memory.covers(begin, end):
            # Rows that this read does not need are evicted. For the events of these as well, Spark would scan bronze.
            past = self._restart(spark, log, begin)
        found = tables_with_events(spark, log, past.begin, end)
        renamings = plan_renamings(found, log.rules, mariadb=log.flavor == "mariadb")
        return replace(past, renamings=renamings, events={table.name: table for table in found})

    def _restart(self, spark: SparkSession, log: SourceContext, begin: Position) -> LogView:
        self._past = LogView(begin, EarlierStructures(spark, log, begin))
        self._forget(begin)
        return self._past

    def _forget(self, begin: Position) -> None:
        """Discard the rows before `begin`; all rows if some after it are missing."""
        self.memory.release(begin)
        if self._read_to is None or not self.memory.covers(begin, self._read_to):
            self.memory.release(self._read_to or begin)
            self._read_to = begin

    def _read(self, spark: SparkSession, log: SourceContext, end: Position) -> None:
        if not self.memory.is_used or self._read_to is None or self._read_to >= end:
            return
        rows = landed_rows(spark, log, self._read_to, end)
        if rows is not None:
            self.memory.add(self._read_to, end, rows)
            self._read_to = end


def is_far(known: Position, begin: Position) -> bool:
    """Whether a read that begins at `begin` must not use what is known up to `known`."""
    if begin < known or (begin.epoch, begin.binlog_file) != (known.epoch, known.binlog_file):
        return True
    return begin.offset - known.offset > FAR_BYTES
