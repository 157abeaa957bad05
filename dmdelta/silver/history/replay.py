"""Replaying: stretches of a table's past applied again, to a table of their own.

Whatever they are for, rows come about by `apply_table`, as they did the first time: compaction, XA groups, statements,
filters. The table's own commits say how far a replay is, and their `run` which replay it is; so one that was killed
goes on, and one that is through does nothing.
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
    """The rows go to one place, whatever the spec's routes say."""

    to: Route = _NOWHERE

    def route(self, source_id: str, schema: str, table: str) -> Route:  # noqa: ARG002 - the one place
        return self.to


def replay_request(request: ApplyRequest, to: Route) -> ApplyRequest:
    """The same events for another place; constant columns that a route extracts stay, unless `to` has some."""
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
    anew: bool,
) -> int:
    """Apply stretches to the place of a request, from where an earlier call with the same `run` was killed. Rows read.

    Args:
        request: `run` stands for this replay; its range is not looked at.
        report: told of each stretch; of one that was there already, without a result.
        anew: what another replay has left there goes.

    Raises:
        ForeignTable: something else is at the place.
        DmdeltaError: as `apply_table`.
    """
    target, first = request.target, stretches[0].begin
    newest = silver_position(spark, target)
    if newest is not None and newest.tag.run == request.context.run and newest.tag.end > stretches[-1].end:
        raise QualityError(
            f"{target.place} is at {newest.tag.end} already, behind {stretches[-1].end}", hint="choose another name"
        )
    if newest is not None and newest.tag.run != request.context.run:
        if not anew:
            raise ForeignTable(
                f"{target.place} is the work of another replay", hint="choose another name, or remove that table"
            )
        _empty(spark, request, first, newest.tag.version)
        newest = silver_position(spark, target)
    elif newest is None and table_state(spark, target.place) is not None:
        raise ForeignTable(f"{target.place} was there before", hint="choose another name, or remove that table")
    reached = newest.tag.end if newest else None
    rows = 0
    for stretch in stretches:
        if reached is not None and stretch.end <= reached:
            report(stretch, None)
            continue
        newest = silver_position(spark, target)
        following = replace(
            _under_its_name(request, stretch),
            begin=max(stretch.begin, reached or stretch.begin),
            end=stretch.end,
            batch=_next_batch(newest.tag.version if newest else None),
            mode=Mode.SAFE if stretch.again else Mode.NORMAL,
        )
        if stretch.renaming is not None and following.begin == stretch.begin:
            carry_over(spark, following, stretch.renaming)
            following = replace(following, ddl_applied_to=stretch.begin)
        result = apply_table(spark, following)
        rows += result.row_count
        report(stretch, result)
    return rows


def _under_its_name(request: ApplyRequest, stretch: ReplayRange) -> ApplyRequest:
    """The request for the events of the name that the table had in a stretch."""
    if stretch.table is None or stretch.table == request.name:
        return request
    schema, table = stretch.table
    return replace(request, schema=schema, table=table, later_name=request.name)


def _next_batch(version: int | None) -> int:
    """A batch whose commits are behind a version."""
    return 1 if version is None else (version >> STEP_BITS) + 1


def discard(spark: SparkSession, request: ApplyRequest) -> None:
    """Take the rows out of a place that has served its purpose; the next replay there begins with an empty table.

    Raises:
        LakehouseError: it cannot be written.
    """
    newest = silver_position(spark, request.target)
    if newest is not None:
        _delete_all(spark, request, newest.tag.version)


def _empty(spark: SparkSession, request: ApplyRequest, at: Position, version: int) -> None:
    """Have a table that another replay has left taken for one that was dropped: the first rows make it anew."""
    _delete_all(spark, request, version)
    newest = silver_position(spark, request.target)
    emptying = replace(request, batch=_next_batch(newest.tag.version if newest else version))
    marking = Change(Verb.ALTER, f"SET TBLPROPERTIES ({literal(DROPPED)} = {literal(str(at))})")
    make_change(spark, request.target.place, marking, tag_of(emptying, 0, at, at))


def _delete_all(spark: SparkSession, request: ApplyRequest, version: int) -> None:
    """Until it is marked an empty table is nobody's: a replay that is killed meanwhile begins again."""
    at = request.begin
    nobodys = replace(request, batch=_next_batch(version), context=replace(request.context, run=""))
    make_change(spark, request.target.place, Change(Verb.DELETE, "true"), tag_of(nobodys, 0, at, at))
