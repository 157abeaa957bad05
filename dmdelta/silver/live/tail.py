"""The state of a source table after a range of the log, without applying it: what `apply_table` does, as a query."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from dmdelta.changelog.integer_keys import has_signed_key
from dmdelta.ddl.types.silver_types import OWN_COLUMNS, silver_columns
from dmdelta.errors import (
    QualityError,
    SchemaError,
    SourceError,
    UnsupportedSchemaChange,
)
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.change import Op
from dmdelta.model.schema import TableSchema
from dmdelta.sharding import Columns
from dmdelta.sharding.operations import plain_type
from dmdelta.silver.apply.gate import failing_any
from dmdelta.silver.apply.request import ApplyRequest
from dmdelta.silver.apply.row_checks import OnFailure
from dmdelta.silver.apply.row_filters import may_repeat, plan_counting
from dmdelta.silver.apply.shard_merge import seen_among
from dmdelta.silver.live.changes import MAX_COPIES, after_changes
from dmdelta.silver.live.memory_changes import MemoryChanges
from dmdelta.silver.live.state import LiveState, no_rows, not_readable, refused
from dmdelta.silver.live.statements import Statements
from dmdelta.silver.rows.batch import Batch
from dmdelta.silver.rows.compaction import compacted, inserted_rows, keyed_changes, silver_rows
from dmdelta.silver.schema.lookup import structure_at, table_log
from dmdelta.silver.schema.range_profile import TableEvents, table_events
from dmdelta.silver.schema.schema_ranges import SchemaRange, known_inside, known_schema, plan_schema_ranges

MAX_RANGES = 128
"""The maximum number of schema ranges: each adds to the same query."""
MAX_QUERIES = 32
"""The maximum number of schema ranges whose changes Spark compacts: each adds joins."""
SENT_BYTES = 8 << 20
"""The maximum size of the changes in memory that are sent to Spark for compaction. Bronze has them, too."""


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
                state = Statements(self.spark, request).after(state, piece)
        is_dropped = pieces[-1].schema is None and (known is not None or events.structure)
        return LiveState(None) if is_dropped else state.complete()

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
                state = LiveState(no_rows(self.spark, request.target.silver_schema(schema)), is_empty=True)
            batch = self._batch(state, piece, schema, inside)
            if batch is None:
                return state
            return _after_batch(state, self._checked(batch))
        except (SchemaError, QualityError, SourceError) as error:
            raise refused(request.name, error, piece.begin) from error

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
        """The rows of a batch of complete changes outside XA transactions; None: they are read from bronze."""
        request, events = self.request, batch.events
        if batch.folds or batch.counted or events.groups or Op.READ in events.rows:
            return None
        rows = request.context.memory.rows(batch.begin, batch.end, request.name)
        if rows is None or not rows.num_rows:
            return None
        return rows if has_signed_key(batch.schema) or rows.nbytes <= SENT_BYTES else None

    def seen(self, rows: DataFrame, schema: TableSchema) -> tuple[TableSchema, tuple[str, ...]]:
        """The structure in silver, and columns of silver that the source has dropped.

        Raises:
            SchemaError: silver lacks a column, or it has another type.
        """
        target, rules = self.request.target, self.request.context.rules
        types = {field.name: plain_type(field.dataType.simpleString()) for field in rows.schema.fields}
        if target.merged:
            own = {*OWN_COLUMNS, *(column.name for column in target.constants)}
            existing = Columns({name: kind for name, kind in types.items() if name not in own}, self.left_out)
            leaves_out = rules.leaves_columns_out(self.request.name)
            return seen_among(target, schema, existing, missing_too=leaves_out), ()
        seen = target.silver_schema(schema)
        if rules.leave_statements_out:
            seen = replace(seen, columns=tuple(column for column in seen.columns if column.name in types))
        needed = no_rows(self.spark, seen).schema.fields
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


def _after_batch(state: LiveState, batch: Batch) -> LiveState:
    """The state after the changes of a batch.

    Raises:
        UnsupportedSchemaChange: the query becomes too large.
    """
    assert state.rows is not None
    if batch.memory is not None and has_signed_key(batch.schema):
        changes = state.changes or MemoryChanges(batch.schema.primary_key[0])
        return replace(state, is_empty=False, changes=changes.after(batch, state.rows))
    state = state.complete()
    assert state.rows is not None
    changed, queries = after_changes(state.rows, batch), state.queries + 1
    copies = 1 if state.is_empty else state.copies * changed.copies
    if copies > MAX_COPIES:
        raise UnsupportedSchemaChange("too many statements are between changes of a table without a key")
    if queries > MAX_QUERIES:
        raise UnsupportedSchemaChange("too many statements change it")
    return LiveState(changed.rows, copies=copies, queries=queries)


def _written(batch: Batch) -> DataFrame:
    """The rows that a batch leaves; of a table without a key, every row that it writes."""
    schema = batch.schema
    if not batch.keyed or batch.inserts_only:
        return inserted_rows(batch.changes.where("op <> 'delete'"), schema)
    changes = keyed_changes(batch.changes, schema, moves=bool(batch.events.moves))
    return silver_rows(compacted(changes, schema).where("op <> 'delete'"), schema)
