"""Tracks the structures of a source's tables while its log lands, for servers that send no column names.

They are known from the history in dm_meta, else from bronze; then each batch's statements are applied to them before it
lands. Once per start, information_schema is read, and used where it is certain: between a table's last statement and
the position at which it was read. So landing waits until the relay has reached that position.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timezone

from pyspark.sql import SparkSession

from dmdelta.bronze.landing import LandingBatch
from dmdelta.bronze.progress import LandedRange
from dmdelta.bronze.schema_rows import structures_before
from dmdelta.bronze.segment_scan import statements_of, tables_of
from dmdelta.changelog.context import SourceContext
from dmdelta.checkpoint.points import ORIGIN
from dmdelta.ddl.tracking.structure_plan import Catalog, LogAhead, StructureChange, StructurePlan, plan_structures
from dmdelta.ddl.tracking.tracked_structures import Origin, Structures, TrackedTable
from dmdelta.engine.control.cancellation import StopRequest
from dmdelta.engine.ingest.schema_history import SchemaHistory, row_of, structures_at
from dmdelta.engine.relay.supervisor import Relaying
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.model.schema import StructureFrom, TableName
from dmdelta.model.segment import Segment
from dmdelta.model.statement import LoggedStatement
from dmdelta.segments import list_segments
from dmdelta.source.catalog_snapshot import CatalogSnapshot
from dmdelta.source.relay.relay_dir import newest_begin

log = get_logger(__name__)
POLL_SECONDS = 0.2
MANY_TABLES = 200
"""For more tables it costs more to send all structures to the executors than to find those that a batch has rows of."""


@dataclass(slots=True)
class StructureTracking:
    """One source's structures, owned by the landing loop. Costs nothing for a server that sends names."""

    spark: SparkSession
    source: SourceContext
    relaying: Relaying
    history: SchemaHistory
    _known: Structures | None = None
    _unwritten: Structures = field(default_factory=Structures)
    _catalog: Catalog | None = None
    _planned: StructurePlan | None = None
    _scanned: dict[str, list[LoggedStatement]] = field(default_factory=dict)

    def follow(
        self, batch: LandingBatch, landed: LandedRange | None, stop: StopRequest
    ) -> tuple[StructureFrom, ...] | None:
        """The structures that apply in the next batch; empty if the log itself contains them; None if the stop was
        requested before they were known.

        Raises:
            SourceError, SourceUnavailable: the source does not answer.
            CorruptBinlog: a segment is damaged.
            LakehouseError: the history cannot be read or written.
        """
        if self._known is None:
            if self.relaying.sends_names:
                return ()
            return self._opened(batch, landed, stop)
        return self._follow(batch)

    def recheck(
        self, batch: LandingBatch, landed: LandedRange | None, stop: StopRequest
    ) -> tuple[StructureFrom, ...] | None:
        """The same after a table map that fits no known structure: reads the source's current structures.

        None if that changes nothing, or if the stop is requested.

        Raises:
            As `follow`.
        """
        if self._known is None:
            return self._opened(batch, landed, stop)
        self._catalog = self._read_catalog(stop)
        if self._catalog is None or stop.requested:
            return None
        before = self._planned
        self.history.remove_ahead(self.history.rows(), _end_of(landed))
        structures = self._follow(batch)
        return None if self._planned == before else structures

    def landed(self, batch: LandingBatch) -> None:
        """The batch of the last `follow` is in bronze."""
        if self._planned is None:
            return
        self._known, self._planned, self._unwritten = self._planned.after, None, Structures()
        if self._catalog is not None and self._catalog.at <= batch.end:
            self._catalog = None
        for segment in batch.segments:
            self._scanned.pop(segment.path, None)

    def _opened(
        self, batch: LandingBatch, landed: LandedRange | None, stop: StopRequest
    ) -> tuple[StructureFrom, ...] | None:
        """`follow` for the first time."""
        end, rows = _end_of(landed), self.history.rows()
        self.history.remove_ahead(rows, end)
        base = Structures()
        if landed is not None and not any(row.counts(end) and not row.is_decision for row in rows):
            base = structures_before(self.spark, self.source, end)
        known = structures_at(rows, end, base)
        self._catalog = self._read_catalog(stop)
        if stop.requested:
            return None
        self._known, self._unwritten = known, base
        log.info("tracking structures", source=self.source.source_id, tables=len(known.tables))
        return self._follow(batch)

    def _read_catalog(self, stop: StopRequest) -> Catalog | None:
        """The contents of information_schema, once the relay has reached its position; None if that is impossible."""
        still = self.relaying.read_catalog_snapshot(self.source.rules.statements_wanted)
        if still is None:
            return None
        while not stop.requested:
            ended = self.relaying.has_ended()  # checked before listing: the list then includes its last segment
            newest = newest_begin(self.relaying.folder)
            if newest is not None and newest.server_uuid == still.server_uuid:
                at = Position(newest.epoch, still.binlog_file, still.offset)
                segments = self._segments()
                if segments and segments[-1].end_position >= at:
                    return _catalog_of(still, at)
            if ended:
                self.relaying.start()  # the log has grown since it started
            stop.wait(POLL_SECONDS)
        return None

    def _follow(self, batch: LandingBatch) -> tuple[StructureFrom, ...]:
        assert self._known is not None
        beyond = self._catalog is not None and self._catalog.at > batch.end
        segments = self._segments() if beyond else batch.segments
        until = self._catalog.at if self._catalog is not None and beyond else batch.end
        statements = [one for one in self._statements(segments, batch.begin, until) if one.position >= batch.begin]
        ahead = LogAhead(batch.begin, batch.end, statements)
        mariadb = self.source.flavor == "mariadb"
        plan = plan_structures(self._known, ahead, self._catalog, mariadb=mariadb)
        self._warn(plan)
        self._record(plan, batch.begin)
        self._planned = plan
        wanted = tuple(found for found in plan.structures(batch.begin) if self.source.rules.wanted(*found.table))
        written = tables_of(batch.segments) if len(wanted) > MANY_TABLES else None
        return wanted if written is None else tuple(found for found in wanted if found.table in written)

    def _statements(self, segments: Iterable[Segment], begin: Position, until: Position) -> list[LoggedStatement]:
        statements: list[LoggedStatement] = []
        for segment in segments:
            if segment.end_position <= begin or segment.begin_position >= until:
                continue
            if segment.path not in self._scanned:
                self._scanned[segment.path] = statements_of(segment)
            statements += self._scanned[segment.path]
        return statements

    def _segments(self) -> list[Segment]:
        return list_segments(self.relaying.folder, self.source.source_id)

    def _record(self, plan: StructurePlan, begin: Position) -> None:
        now = datetime.now(timezone.utc)
        base = [
            StructureChange(begin, *name, tracked, tracked.charset) for name, tracked in self._unwritten.tables.items()
        ]
        changes = [
            change
            for change in (*base, *plan.changes)
            if self.source.rules.statements_wanted(change.schema, change.table)
        ]
        self.history.append([row_of(change, now) for change in changes])

    def _warn(self, plan: StructurePlan) -> None:
        for change in plan.changes:
            table, at = f"{change.schema}.{change.table}", str(change.position)
            if not self.source.rules.statements_wanted(change.schema, change.table):
                continue
            if change.surprise:
                log.warning(
                    "information_schema differs from the structure that the statements lead to", table=table, at=at
                )
            elif change.lost:
                log.warning("statement not parsed: the table's structure is unknown from here on", table=table, at=at)


def _end_of(landed: LandedRange | None) -> Position:
    return landed.end if landed is not None else ORIGIN


def _catalog_of(still: CatalogSnapshot, at: Position) -> Catalog:
    tables: dict[TableName, TrackedTable] = {
        schema.name: TrackedTable(schema, still.charsets.get(schema.name), Origin.INFORMATION_SCHEMA)
        for schema in still.tables
    }
    databases = {schema: charset for (schema, table), charset in still.charsets.items() if table is None}
    return Catalog(at, Structures(tables, databases), still.keyed)
