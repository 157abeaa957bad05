"""The state of a source table after a range of the log, without applying it: what `apply_table` does, as a query."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from dmdelta.changelog.integer_keys import has_signed_key
from dmdelta.ddl.tracking.effects import Altered, Created, Dropped, Effect, Renamed, Truncated
from dmdelta.ddl.types.silver_types import OWN_COLUMNS, silver_columns
from dmdelta.errors import (
    NotReadable,
    QualityError,
    SchemaError,
    SourceError,
    UnsupportedSchemaChange,
)
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.sharding import Columns
from dmdelta.sharding.operations import plain_type
from dmdelta.silver.apply.gate import failing_any
from dmdelta.silver.apply.request import ApplyRequest
from dmdelta.silver.apply.row_checks import OnFailure
from dmdelta.silver.apply.row_filters import may_repeat, plan_counting
from dmdelta.silver.apply.shard_merge import seen_among
from dmdelta.silver.live.changes import MAX_COPIES, after_changes
from dmdelta.silver.rows.batch import Batch
from dmdelta.silver.rows.compaction import compacted, inserted_rows, keyed_changes, silver_rows
from dmdelta.silver.schema.evolution import older_than, plan_columns_after
from dmdelta.silver.schema.lookup import structure_at, table_log
from dmdelta.silver.schema.range_profile import TableEvents, table_events
from dmdelta.silver.schema.schema_ranges import SchemaRange, known_inside, known_schema, plan_schema_ranges

MAX_RANGES = 32
"""The maximum number of schema ranges: each adds to the same query."""


@dataclass(frozen=True, slots=True)
class LiveState:
    """The rows of a source table at a position.

    Attributes:
        rows: with silver's columns; None: the table does not exist.
        is_empty: the table is known to have no rows.
        copies: how often the query contains the rows that it started from.
    """

    rows: DataFrame | None
    is_empty: bool = False
    copies: int = 1


@dataclass(frozen=True, slots=True)
class LiveTail:
    """The part of a table's log that a live read adds to a state.

    Attributes:
        request: the table, the range, its mode, and what is known of it.
        left_out: in lower case, columns that the merged table omits.
    """

    spark: SparkSession
    request: ApplyRequest
    left_out: frozenset[str] = frozenset()

    def after(self, state: LiveState) -> LiveState:
        """The state at the end of the range.

        Raises:
            NotReadable: silver could not apply the range, or only with the rows at hand; names the last position at
                which the table can be read.
            LakehouseError: bronze cannot be read.
        """
        request = self.request
        if request.begin == request.end:
            return state
        events = request.events or table_events(self.spark, request.context, request.name, request.begin, request.end)
        earlier = request.earlier.events if request.earlier is not None else None
        known = structure_at(self.spark, request.context, request.name, request.begin, earlier)
        log = table_log(self.spark, request.context, request.name, events.structure, request.ddl_applied_to)
        pieces = plan_schema_ranges(log, known, request.begin, request.end)
        if len(pieces) > MAX_RANGES:
            raise not_readable(request.name, "too many statements change it", pieces[MAX_RANGES - 1].end)
        for piece in pieces:
            state = self._after_rows(state, piece, pieces, events)
            if piece.then is not None:
                state = self._after_statement(state, piece)
        is_dropped = pieces[-1].schema is None and (known is not None or events.structure)
        return LiveState(None) if is_dropped else state

    def _after_rows(
        self, state: LiveState, piece: SchemaRange, pieces: Sequence[SchemaRange], events: TableEvents
    ) -> LiveState:
        request = self.request
        try:
            inside = known_inside(piece, pieces, events)
            if inside is None:
                inside = table_events(self.spark, request.context, request.name, piece.begin, piece.end)
            if not inside.row_count:
                return state
            schema = known_schema(piece, request.name)
            if state.rows is None:
                state = LiveState(_no_rows(self.spark, request.target.silver_schema(schema)), is_empty=True)
            batch = self._batch(state, piece, schema, inside)
            if batch is None:
                return state
            assert state.rows is not None
            changed = after_changes(state.rows, self._checked(batch))
            copies = 1 if state.is_empty else state.copies * changed.copies
            if copies > MAX_COPIES:
                raise UnsupportedSchemaChange("too many statements are between changes of a table without a key")
            return LiveState(changed.rows, copies=copies)
        except (SchemaError, QualityError, SourceError) as error:
            raise _refused(request.name, error, piece.begin) from error

    def _batch(self, state: LiveState, piece: SchemaRange, schema: TableSchema, events: TableEvents) -> Batch | None:
        """The row changes of a schema range; None if filters exclude all of them."""
        request, target = self.request, self.request.target
        assert state.rows is not None
        events, counted = plan_counting(request, schema, events)
        if not events.row_count:
            return None
        seen, undropped = self.seen(state.rows, schema)
        batch = Batch(
            spark=self.spark,
            bronze=request.context.lakehouse.bronze,
            source_id=request.context.source_id,
            target=target.place,
            schema=seen,
            begin=piece.begin,
            end=piece.end,
            events=events,
            mode=request.mode,
            empty=state.is_empty,
            counted=counted,
            undropped=undropped,
            repeats=may_repeat(request),
        )
        return replace(batch, memory=self._in_memory(batch))

    def _in_memory(self, batch: Batch) -> Any:
        """The rows of a batch whose compaction needs no query; None: they are read from bronze."""
        request, events = self.request, batch.events
        needs_query = batch.folds or batch.counted or bool(events.groups) or Op.READ in events.rows
        if needs_query or not has_signed_key(batch.schema):
            return None
        rows = request.context.memory.rows(batch.begin, batch.end, request.name)
        return rows if rows is not None and rows.num_rows else None

    def seen(self, rows: DataFrame, schema: TableSchema) -> tuple[TableSchema, tuple[str, ...]]:
        """The structure in silver, and columns of silver that the source has dropped.

        Raises:
            SchemaError: silver lacks a column, or it has another type.
        """
        target, leaves_out = self.request.target, self.request.context.rules.leave_statements_out
        types = {field.name: plain_type(field.dataType.simpleString()) for field in rows.schema.fields}
        if target.merged:
            own = {*OWN_COLUMNS, *(column.name for column in target.constants)}
            existing = Columns({name: kind for name, kind in types.items() if name not in own}, self.left_out)
            return seen_among(target, schema, existing, missing_too=leaves_out), ()
        seen = target.silver_schema(schema)
        if leaves_out:
            seen = replace(seen, columns=tuple(column for column in seen.columns if column.name in types))
        needed = _no_rows(self.spark, seen).schema.fields
        wrong = [field.name for field in needed if types.get(field.name) != plain_type(field.dataType.simpleString())]
        if wrong or any(key not in types for key in seen.primary_key):
            raise UnsupportedSchemaChange(f"the column {(*wrong, 'of its key')[0]} differs between silver and the log")
        dropped = [name for name in types if name not in silver_columns(seen)] if seen.primary_key else []
        return seen, tuple(dropped)

    def _checked(self, batch: Batch) -> Batch:
        """The batch without the rows that silver quarantines.

        Raises:
            QualityError: rows fail an expectation that stops the table, or the batch cannot be evaluated.
            LakehouseError: bronze cannot be read.
        """
        checks = self.request.context.checks(self.request.target, batch.schema)
        stopping = [check for check in checks if check.on_failure is OnFailure.STOP]
        quarantining = [check for check in checks if check.on_failure is OnFailure.QUARANTINE]
        if not stopping and not quarantining:
            return batch
        if batch.events.partial or batch.undropped or (quarantining and not batch.keyed):
            raise QualityError("its expectations cannot be evaluated: row images lack columns, or it has no key")
        if stopping:
            with wrapped(batch.bronze, "reading"):
                if not _written(batch).where(failing_any(stopping)).isEmpty():
                    raise QualityError("an expectation with the action stop fails")
        return replace(batch, failing=failing_any(quarantining)) if quarantining else batch

    def _after_statement(self, state: LiveState, piece: SchemaRange) -> LiveState:
        assert piece.then is not None
        name, at = self.request.name, piece.end
        if piece.then.refused:
            raise not_readable(name, f"a statement cannot be applied: {piece.then.refused}", at)
        for effect in piece.then.effects:
            try:
                state = self._after_effect(state, effect, at)
            except SchemaError as error:
                raise _refused(name, error, at) from error
        return state

    def _after_effect(self, state: LiveState, effect: Effect, at: Position) -> LiveState:
        """
        Raises:
            SchemaError: silver cannot apply the effect, or a query cannot.
        """
        request = self.request
        if request.target.merged and not (isinstance(effect, Created) and state.is_empty):
            raise UnsupportedSchemaChange("a statement on a shard of a merged table is not in silver yet")
        if isinstance(effect, Created):
            if effect.schema is None:
                return LiveState(None)
            if request.target.merged:
                return state
            return LiveState(_no_rows(self.spark, request.target.silver_schema(effect.schema)), is_empty=True)
        if state.rows is None:
            return state
        if isinstance(effect, Dropped):
            return LiveState(None)
        if isinstance(effect, Truncated):
            return replace(state, rows=state.rows.where(f"NOT ({older_than(at)})"))
        if isinstance(effect, Renamed):
            raise UnsupportedSchemaChange("an operator override cannot contain a RENAME")
        if isinstance(effect, Altered):
            return self._altered(state, effect, at)
        raise UnsupportedSchemaChange(effect.reason)

    def _altered(self, state: LiveState, effect: Altered, at: Position) -> LiveState:
        request, rows = self.request, state.rows
        assert rows is not None
        if request.context.rules.leave_statements_out:
            raise UnsupportedSchemaChange("filters or overrides exclude statements, and this one is not in silver yet")
        if request.safe_until is not None and at < request.safe_until:
            raise UnsupportedSchemaChange("it is unknown whether silver contains a statement that a snapshot overlaps")
        mariadb = request.context.flavor == "mariadb"
        columns, unknown = plan_columns_after(request.target.seen_change(effect), mariadb=mariadb)
        if unknown and not state.is_empty:
            with wrapped(request.target.place, "reading"):
                if not rows.isEmpty():
                    raise UnsupportedSchemaChange(unknown)
        return replace(state, rows=rows.selectExpr(*columns))


def not_readable(name: TableName, reason: str, last: Position | None) -> NotReadable:
    """The error for a table that cannot be read at a position.

    Args:
        last: the last position at which it can be read; None: unknown.
    """
    hint = f"read it at {last} or before: --at {last}" if last is not None else "wait until silver contains the change"
    return NotReadable(f"{'.'.join(name)} cannot be read there: {reason}", hint=hint, **_readable(last))


def _readable(last: Position | None) -> dict[str, str]:
    return {"readable": str(last)} if last is not None else {}


def _refused(name: TableName, error: SchemaError | QualityError | SourceError, last: Position) -> NotReadable:
    return error if isinstance(error, NotReadable) else not_readable(name, error.message, last)


def _written(batch: Batch) -> DataFrame:
    """The rows that a batch leaves; of a table without a key, every row that it writes."""
    schema = batch.schema
    if not batch.keyed or batch.inserts_only:
        return inserted_rows(batch.changes.where("op <> 'delete'"), schema)
    changes = keyed_changes(batch.changes, schema, moves=bool(batch.events.moves))
    return silver_rows(compacted(changes, schema).where("op <> 'delete'"), schema)


def _no_rows(spark: SparkSession, schema: TableSchema) -> DataFrame:
    """A frame without rows with the columns of a structure in silver."""
    values = (f"CAST(NULL AS {kind}) AS {quote(name)}" for name, kind in silver_columns(schema).items())
    return spark.sql(f"SELECT {', '.join(values)} WHERE false")
