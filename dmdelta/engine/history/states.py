"""The state of a table at the end of a range, to evaluate it: from silver's history, or rebuilt from bronze."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from dmdelta.engine.history.lineage import TablePast
from dmdelta.engine.history.scratch import TableScratch
from dmdelta.engine.task.task import Task
from dmdelta.errors import QualityError
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.silver.apply.quarantine import Quarantine, without_quarantined
from dmdelta.silver.apply.request import ApplyRequest
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.history.lineage import ReplayRange, begins_as
from dmdelta.silver.history.range_changes import schema_at_end
from dmdelta.silver.history.repair import rows_at, table_version_at
from dmdelta.silver.schema.evolution import older_than
from dmdelta.silver.table.shard_rows import as_held, seen_whole, shape_of, shard_rows
from dmdelta.silver.table.state import silver_state
from dmdelta.silver.table.table import Condition, silver_condition

_REPEATED = "silver may have contained some of the range before"
_PRESENT = Condition.PRESENT
_REBUILD = "rebuild the range from bronze: dmdelta quality SPEC --replay --from PLACE --to PLACE"


@dataclass(frozen=True, slots=True)
class EarlierState:
    """The state of a table before a range.

    Attributes:
        rows: None if unknown.
        uncountable: why the row count after the range cannot be computed from it; '' if it can.
    """

    rows: DataFrame | None
    uncountable: str = ""


@dataclass(frozen=True, slots=True)
class PastState:
    """A source table's rows after the log up to `request.end` was applied.

    Attributes:
        request: selects the range that is evaluated.
        position: the position of the rows: the range's end, or the end of the table's last commit before it.
        rows: the rows of silver.
        every: the rows of silver and of the quarantine, if the latter are known.
    """

    request: ApplyRequest
    position: Position
    schema: TableSchema
    rows: DataFrame
    every: DataFrame
    earlier: EarlierState | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        return self.schema.primary_key

    @property
    def touched(self) -> DataFrame:
        """The rows whose newest version is from the range."""
        return self.rows.where(f"NOT ({older_than(self.request.begin)}) AND {older_than(self.request.end)}")


@dataclass(frozen=True, slots=True)
class SilverHistory:
    """The states of a source's tables, read with Delta's time travel."""

    task: Task
    context: SilverContext

    def state(self, request: ApplyRequest, *, ranged: bool) -> PastState | None:
        """The state at a request's end; None if bronze has no schema of the table there.

        Args:
            ranged: include the state at the request's begin.

        Raises:
            QualityError: silver's history does not go back to the request. LakehouseError: a table cannot be read.
        """
        spark, target = self.task.spark, request.target
        try:
            at = table_version_at(spark, target, request.end)
        except QualityError as error:
            raise QualityError(error.message, hint=_REBUILD) from error
        schema = schema_at_end(spark, replace(request, end=at.position))
        if schema is None:
            return None
        rows = shard_rows(target, rows_at(spark, target, at.version))
        earlier = self._earlier(request) if ranged else None
        return PastState(request, at.position, schema, rows, rows, earlier)

    def parent_rows(self, names: Sequence[TableName], request: ApplyRequest) -> DataFrame | None:
        """The rows of a referenced table at a request's end, including all shards; None if it is not in silver.

        Args:
            names: the source tables that are routed to the referenced silver table.

        Raises:
            QualityError, LakehouseError: as `state`.
        """
        spark = self.task.spark
        targets = [target for name in names if silver_condition(spark, target := self.context.table(name)) is _PRESENT]
        if not targets:
            return None
        version = max(table_version_at(spark, target, request.end).version for target in targets)
        return rows_at(spark, targets[0], version)

    def close(self) -> None:
        """Does nothing: there are no scratch tables."""

    def _earlier(self, request: ApplyRequest) -> EarlierState:
        spark, target = self.task.spark, request.target
        try:
            before = table_version_at(spark, target, request.begin)
        except QualityError as error:
            return EarlierState(None, error.message)
        until = before.commit.tag.safe_until
        repeated = until is not None and before.position < until
        reason = _REPEATED if repeated else ""
        quarantine = Quarantine.of(target)
        if quarantine.has_rows(spark):
            reason = "rows of the table are quarantined"
        elif quarantine.has_changed(spark, since=before.commit.at):
            reason = "rows of the table were quarantined"
        return EarlierState(shard_rows(target, rows_at(spark, target, before.version)), reason)


@dataclass(frozen=True, slots=True)
class ReplayedHistory:
    """The states of a source's tables, rebuilt from bronze in scratch tables, which `close` empties.

    Attributes:
        evaluated: tables whose state before the range is needed, too; of others, only their rows are read.
    """

    task: Task
    context: SilverContext
    evaluated: frozenset[TableName]
    _built: list[tuple[TableScratch, ApplyRequest]] = field(default_factory=list)
    _states: dict[TableName, PastState] = field(default_factory=dict)

    def state(self, request: ApplyRequest, *, ranged: bool) -> PastState | None:
        """As `SilverHistory.state`; each table is rebuilt once, for the first request.

        Raises:
            QualityError: bronze does not have the table's history, or a snapshot read the table at the position.
            DmdeltaError: as `replay_ranges`.
        """
        name = request.name
        if name not in self._states and (rebuilt := self._rebuilt(request, ranged=ranged)) is not None:
            self._states[name] = rebuilt
        return self._states.get(name)

    def parent_rows(self, names: Sequence[TableName], request: ApplyRequest) -> DataFrame | None:
        """As `SilverHistory.parent_rows`; of a merged table, only the shards of this source.

        Raises:
            DmdeltaError: as `state`.
        """
        rows: DataFrame | None = None
        for name in names:
            parent = self._scratch(name).own_request(request.begin, request.end)
            state = self.state(parent, ranged=name in self.evaluated)
            if state is not None:
                rows = state.rows if rows is None else rows.unionByName(state.rows, allowMissingColumns=True)
        return rows

    def close(self) -> None:
        """Delete the rows of all scratch tables.

        Raises:
            LakehouseError: a scratch table cannot be written.
        """
        for scratch, request in self._built:
            scratch.discard(request)

    def _rebuilt(self, request: ApplyRequest, *, ranged: bool) -> PastState | None:
        spark, target, name = self.task.spark, request.target, request.name
        if schema_at_end(spark, request) is None:
            return None
        scratch, table_past = self._scratch(name), TablePast(self.task, self.context, name)
        past = table_past.until(request.end)
        table_past.assert_settled(past, request.end)
        building = scratch.request(past, "quality", self.task.run)
        self._built.append((scratch, building))
        earlier = self._earlier(table_past, scratch, building, request, past) if ranged else None
        scratch.build(building, past)
        schema = table_past.schema_before(request.end)
        held = shape_of(spark, target, schema)
        seen = seen_whole(target, schema, held)
        every = scratch.rows(building, held)
        rows = without_quarantined(spark, target, every, target.silver_schema(schema))
        return PastState(request, request.end, seen, rows, every, earlier)

    def _earlier(
        self,
        table_past: TablePast,
        scratch: TableScratch,
        building: ApplyRequest,
        request: ApplyRequest,
        past: Sequence[ReplayRange],
    ) -> EarlierState:
        """The state of the scratch table after the log was applied up to the range's begin."""
        try:
            earlier = table_past.until(request.begin)
            table_past.assert_settled(earlier, request.begin)
            schema = table_past.schema_before(request.begin)
        except QualityError as error:
            return EarlierState(None, error.message)
        if not begins_as(earlier, past):
            return EarlierState(None, "the history of the table restarts in the range")
        scratch.build(building, earlier)
        held = shape_of(self.task.spark, request.target, schema)
        version = silver_state(self.task.spark, building.target).delta_version
        rows = held.where("false")
        if version is not None:
            rows = as_held(rows_at(self.task.spark, building.target, version), held)
        repeated = any(part.again and part.end > request.begin for part in past)
        return EarlierState(rows, _REPEATED if repeated else "")

    def _scratch(self, name: TableName) -> TableScratch:
        return TableScratch(self.task, self.context, name, lambda _: None)


def range_requests(past: TablePast, begin: Position, end: Position, base: ApplyRequest) -> list[ApplyRequest]:
    """The requests for a range of a table's events, one for each name that the table had in it.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    requests: list[ApplyRequest] = []
    for ancestor in past.lineage(end):
        since = ancestor.begin
        if ancestor.end <= begin:
            continue
        schema, table = ancestor.name
        inside = since is not None and since >= begin
        requests.append(
            replace(
                base,
                schema=schema,
                table=table,
                later_name=base.name if ancestor.name != base.name else None,
                begin=since if since is not None and inside else begin,
                end=ancestor.end,
                ddl_applied_to=since if inside else None,
            )
        )
    return requests
