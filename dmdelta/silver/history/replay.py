"""Replay: apply ranges of a table's history to another Delta table.

Every replay uses `apply_table`, like the run: compaction, XA groups, statements and filters are the same. The table's
own commits record the replay's position, and `run` identifies the replay. An interrupted replay resumes from there, and
a complete one does nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from dmdelta.errors import ForeignTable, QualityError
from dmdelta.lakehouse.changes import Change, Verb
from dmdelta.lakehouse.commits import make_change
from dmdelta.lakehouse.tables import table_state
from dmdelta.model.position import Position
from dmdelta.model.spark_sql import literal
from dmdelta.rules.routes import Route, Routes
from dmdelta.silver.apply.apply import apply_table
from dmdelta.silver.apply.renames import carry_over
from dmdelta.silver.apply.request import STEP_BITS, ApplyRequest, ApplyResult, tag_of
from dmdelta.silver.history.lineage import ReplayRange
from dmdelta.silver.rows.strategy import Mode
from dmdelta.silver.schema.evolution import DROPPED
from dmdelta.silver.table.state import silver_position

_NOWHERE = Route("", "")


@dataclass(frozen=True, slots=True)
class RouteTo(Routes):
    """Routes every table to one silver table, regardless of the spec's routes."""

    to: Route = _NOWHERE

    def route(self, source_id: str, schema: str, table: str) -> Route:  # noqa: ARG002 - the interface of Routes
        return self.to


def replay_request(request: ApplyRequest, to: Route) -> ApplyRequest:
    """The request with another silver table. Keeps the columns that the route extracts, unless `to` extracts some."""
    own = request.target.route
    routes = RouteTo(to=replace(to, extracted=to.extracted or own.extracted))
    rules = replace(request.context.rules, routes=routes)
    return replace(request, context=replace(request.context, rules=rules))


def replay_ranges(
    spark: SparkSession,
    request: ApplyRequest,
    stretches: Sequence[ReplayRange],
    report: Callable[[ReplayRange, ApplyResult | None], object],
    *,
    discard_previous: bool,
) -> int:
    """Apply replay ranges to the target of a request. Resumes an interrupted call with the same `run`.

    Args:
        request: its `run` identifies the replay; its range is ignored.
        report: called for each range, with the result; with None if an earlier call has applied the range.
        discard_previous: delete the rows of another replay. Without it, those are an error.

    Returns:
        The number of row changes that were read.

    Raises:
        ForeignTable: the target is the table of another replay, or not a replay table.
        QualityError: the target is past the last range.
        DmdeltaError: as `apply_table`.
    """
    reached = _reached(spark, request, stretches, discard_previous=discard_previous)
    rows = 0
    for stretch in stretches:
        if reached is not None and stretch.end <= reached:
            report(stretch, None)
            continue
        result = _apply_range(spark, request, stretch, max(stretch.begin, reached or stretch.begin))
        rows += result.row_count
        report(stretch, result)
    return rows


def _reached(
    spark: SparkSession, request: ApplyRequest, stretches: Sequence[ReplayRange], *, discard_previous: bool
) -> Position | None:
    """The position up to which the target has the replay; None if it does not exist. Empties the table of another one.

    Raises:
        ForeignTable, QualityError: as `replay_ranges`.
    """
    target, end = request.target, stretches[-1].end
    newest = silver_position(spark, target)
    if newest is None:
        if table_state(spark, target.place) is not None:
            raise ForeignTable(f"{target.place} already exists", hint="choose another name, or drop that table")
        return None
    if newest.tag.run == request.context.run:
        if newest.tag.end > end:
            raise QualityError(f"{target.place} is at {newest.tag.end}, after {end}", hint="choose another name")
        return newest.tag.end
    if not discard_previous:
        raise ForeignTable(
            f"{target.place} belongs to another replay, or to one under other rules or overrides of statements",
            hint="choose another name, or drop that table",
        )
    _empty(spark, request, stretches[0].begin, newest.tag.version)
    emptied = silver_position(spark, target)
    return emptied.tag.end if emptied else None


def _apply_range(spark: SparkSession, request: ApplyRequest, stretch: ReplayRange, begin: Position) -> ApplyResult:
    """Apply a range from `begin` on, in a batch after those of the target."""
    newest = silver_position(spark, request.target)
    following = replace(
        _under_its_name(request, stretch),
        begin=begin,
        end=stretch.end,
        batch=_next_batch(newest.tag.version if newest else None),
        mode=Mode.SAFE if stretch.again else Mode.NORMAL,
    )
    if stretch.renaming is not None and begin == stretch.begin:
        carry_over(spark, following, stretch.renaming)
        following = replace(following, ddl_applied_to=stretch.begin)
    return apply_table(spark, following)


def _under_its_name(request: ApplyRequest, stretch: ReplayRange) -> ApplyRequest:
    """The request for the events of the name that the table had in a range."""
    if stretch.table is None or stretch.table == request.name:
        return request
    schema, table = stretch.table
    return replace(request, schema=schema, table=table, later_name=request.name)


def _next_batch(version: int | None) -> int:
    """A batch number whose commits come after a transaction version."""
    return 1 if version is None else (version >> STEP_BITS) + 1


def discard(spark: SparkSession, request: ApplyRequest) -> None:
    """Delete the rows of a replay table that is no longer needed; the next replay starts with an empty table.

    Raises:
        LakehouseError: it cannot be written.
    """
    newest = silver_position(spark, request.target)
    if newest is not None:
        _delete_all(spark, request, newest.tag.version)


def _empty(spark: SparkSession, request: ApplyRequest, at: Position, version: int) -> None:
    """Empty the table of another replay and mark it as dropped, so that the first rows recreate it."""
    _delete_all(spark, request, version)
    newest = silver_position(spark, request.target)
    emptying = replace(request, batch=_next_batch(newest.tag.version if newest else version))
    marking = Change(Verb.ALTER, f"SET TBLPROPERTIES ({literal(DROPPED)} = {literal(str(at))})")
    make_change(spark, request.target.place, marking, tag_of(emptying, 0, at, at))


def _delete_all(spark: SparkSession, request: ApplyRequest, version: int) -> None:
    """Delete all rows with a commit that belongs to no replay: a replay that is interrupted here starts over."""
    at = request.begin
    unowned = replace(request, batch=_next_batch(version), context=replace(request.context, run=""))
    make_change(spark, request.target.place, Change(Verb.DELETE, "true"), tag_of(unowned, 0, at, at))
