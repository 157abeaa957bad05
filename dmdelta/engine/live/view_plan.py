"""What a view of a table reads: the decisions that a live read makes each time, made once for many reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone

from dmdelta.changelog.row_filters import ROW_EVENTS, ignored_ops, left_out_rows
from dmdelta.engine.live.base import QUERY_TIME
from dmdelta.engine.live.source import LiveSource
from dmdelta.errors import SchemaError
from dmdelta.lakehouse.retention import DELTA
from dmdelta.model.change import Op
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.silver.apply.row_checks import OnFailure
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.live.state import not_readable
from dmdelta.silver.live.view_query import ViewPart
from dmdelta.silver.schema.lookup import structure_at
from dmdelta.silver.schema.range_profile import StructureEvent


@dataclass(frozen=True, slots=True)
class NoView:
    """Why a table has no view, however long one waits."""

    reason: str


@dataclass(frozen=True, slots=True)
class ViewFacts:
    """What decides whether a source table can have a view.

    Attributes:
        schema: its structure in silver.
        undropped: columns of silver that the source has dropped.
        rejects: expectations keep rows out of silver, or stop the table.
        filtered: an expression filter applies to its rows.
    """

    schema: TableSchema
    undropped: Sequence[str] = ()
    rejects: bool = False
    filtered: bool = False


def plan_refusal(facts: ViewFacts) -> NoView | None:
    """Why the rows of a source table cannot be in a view; None if they can."""
    if not facts.schema.primary_key:
        return NoView("it has no primary key")
    if facts.rejects:
        return NoView("expectations keep rows out of silver, and a view cannot evaluate them")
    if facts.filtered:
        return NoView("an expression filter applies to its rows")
    if facts.undropped:
        return NoView("silver has a column that the source has dropped")
    return None


def view_parts(parts: Sequence[tuple[LiveSource, TableName]]) -> tuple[ViewPart, ...] | NoView:
    """What the view of a silver table reads: a part for each of its source tables.

    Raises:
        NotReadable: not yet; silver has to advance.
        DmdeltaError: as `LiveSource.state`.
    """
    found: list[ViewPart] = []
    for live, name in parts:
        part = _part(live, name)
        if isinstance(part, NoView):
            return part
        found.append(part)
    if any(part.columns != found[0].columns for part in found):
        raise not_readable(parts[0][1], "its columns change", None)
    return tuple(found)


def _part(live: LiveSource, name: TableName) -> ViewPart | NoView:
    spark, context = live.source.task.spark, live.source.context
    base, tail = live.newest_base(name)
    earlier = live.structures_before(name, tail.begin)
    schema = structure_at(spark, context, name, tail.begin, earlier)
    if schema is None:
        raise not_readable(name, "it does not exist", None)
    rows = live.silver_rows(name, base)
    try:
        seen, undropped = live.tail(name, tail, base).seen(rows, schema)
        ignored = ignored_ops(context.rules, name, tuple(ROW_EVENTS))
        facts = ViewFacts(seen, undropped, _rejects(context, name, seen), _is_filtered(context, schema))
    except SchemaError as error:
        return NoView(error.message)
    target, refusal = context.table(name), plan_refusal(facts)
    return refusal or ViewPart(
        silver=target.place,
        bronze=context.bronze,
        version=base.version,
        own_rows=target.own_rows,
        source_id=context.source_id,
        name=name,
        begin=tail.begin,
        schema=seen,
        columns={field.name: field.dataType.simpleString() for field in rows.schema.fields},
        recorded=recorded_text(earlier),
        ignored=ignored,
    )


def recorded_text(earlier: Sequence[StructureEvent]) -> str | None:
    """The structure that bronze has recorded last, if no statement follows it."""
    (first, *later) = earlier or (None,)
    return first.text if first is not None and first.op is Op.SCHEMA and not later else None


def _rejects(context: SilverContext, name: TableName, seen: TableSchema) -> bool:
    checks = context.checks(context.table(name), seen)
    return any(check.on_failure in (OnFailure.QUARANTINE, OnFailure.STOP) for check in checks)


def _is_filtered(context: SilverContext, schema: TableSchema) -> bool:
    conditions = (left_out_rows(context.rules, context.flavor, schema, op, partial=False) for op in ROW_EVENTS)
    return any(condition is not None for condition in conditions)


def valid_until(now: datetime, first_landed: date | None, bronze_days: int | None) -> datetime:
    """How long a view's rows are kept: silver's replaced files, and the changes in bronze.

    Args:
        first_landed: the day when the first change of the view landed; None: it has none yet.
        bronze_days: `maintenance.bronze-days`.
    """
    files = now + DELTA.files
    if bronze_days is None:
        return files - QUERY_TIME
    # Changes of a day expire when `bronze_days` whole days have passed after it.
    first = first_landed or now.date()
    changes = datetime.combine(first + timedelta(days=bronze_days + 1), datetime.min.time(), timezone.utc)
    return min(files, changes) - QUERY_TIME
