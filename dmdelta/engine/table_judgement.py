"""Judging one table: by what is expected of every table, and by its suite."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

from pyspark.sql import DataFrame, SparkSession

from dmdelta.changelog.ranges import of_source, of_table
from dmdelta.config import ExpectationConfig
from dmdelta.engine.foreign_key_evaluation import Child, ForeignKeyEvaluation
from dmdelta.engine.requests import SilverSide
from dmdelta.engine.task import Task
from dmdelta.errors import QualityError
from dmdelta.lakehouse.foreign import wrapped
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.quality.built_in import (
    broken_promises,
    doubled_keys,
    keys_with_nulls,
    not_null_columns,
    versions_from_nowhere,
    versions_gone_back,
)
from dmdelta.quality.results import SAMPLES, Judged, Result, Scope, Validation, plain
from dmdelta.quality.suite import Expectation, Suite, Suites
from dmdelta.silver.evolution import older_than
from dmdelta.silver.range_rows import RangePiece, pieces_of, rows_added, schema_behind
from dmdelta.silver.repair import Standing, rows_at, standing_at
from dmdelta.silver.request import ApplyRequest


@dataclass(frozen=True, slots=True)
class JudgedTable:
    """What judging a table has found.

    Attributes:
        validations: what Great Expectations says of it; none without a suite, one for each structure of images.
    """

    judged: Judged
    results: tuple[Result, ...]
    validations: tuple[Validation, ...] = ()

    @property
    def failed(self) -> bool:
        return not all(result.success for result in self.results)


@dataclass(frozen=True, slots=True)
class TableJudgement:
    """The judgement of the tables of one source.

    Attributes:
        freshness: how old the oldest landed change that a table lacks may be.
    """

    task: Task
    side: SilverSide
    foreign_keys: ForeignKeyEvaluation
    freshness: timedelta
    suites: Suites

    def judge(self, name: TableName, scope: Scope, begin: Position | None, end: Position) -> JudgedTable:
        """Judge a table as it was when the log had been applied up to `end`.

        Args:
            begin: of the range whose rows are judged; None for all rows.

        Raises:
            ConfigError: its suite does not fit. QualityError: silver's history does not go back to `end`.
            DmdeltaError: bronze, silver or the source cannot be read.
        """
        target = self.side.table(name)
        suite = self.suites.of(target.route.name)
        judged = Judged(self.side.source_id, target.route.name, scope, begin, end)
        if scope is Scope.IMAGES:
            assert begin is not None
            return self._judge_images(suite, judged, self._request(name, begin, end))
        at, request = standing_at(self.task.spark, target, end), self._request(name, begin or end, end)
        schema = schema_behind(self.task.spark, replace(request, end=at.position))
        if schema is None:
            unknown = Result("structure", "warn", success=True, note="not judged: bronze has no row of the table")
            return JudgedTable(judged, (unknown,))
        table = _Table(self.task.spark, request, at, schema)
        rows = table.touched(begin) if begin is not None else table.rows
        child = Child(request, table.rows, rows if begin is not None else None, begin, table.keys)
        keys = self.foreign_keys.evaluate(suite, child)
        built_in = [*self._built_in(table, rows, begin), *keys, *_promises(suite, table)]
        wanted = (*_not_null(suite, table), *suite.expectations)
        results, validations = _judge_suite(rows, judged, wanted, table.keys)
        return JudgedTable(judged, (*built_in, *results), validations)

    def _judge_images(self, suite: Suite, judged: Judged, request: ApplyRequest) -> JudgedTable:
        found: list[Result] = []
        said: list[Validation] = []
        for piece in pieces_of(self.task.spark, request):
            part, keys = replace(judged, begin=piece.begin, end=piece.end), piece.batch.schema.primary_key
            results, validations = _judge_suite(piece.images, part, suite.expectations, keys)
            found += results
            said += validations
        return JudgedTable(judged, tuple(found), tuple(said))

    def _built_in(self, table: "_Table", rows: DataFrame, begin: Position | None) -> Iterator[Result]:
        if table.keys:
            yield _none_of("key is unique", doubled_keys(rows, table.rows, table.schema), table.keys)
            yield _none_of("key is not null", keys_with_nulls(rows, table.schema), table.keys)
        yield _none_of("version is of the log", versions_from_nowhere(rows, table.at.position), table.keys)
        if begin is not None and table.keys:
            yield from _compared(table, rows, begin)
        yield self._fresh(table)

    def _fresh(self, table: "_Table") -> Result:
        """How long silver has lacked the oldest landed change that it lacks."""
        request, at = table.request, table.now.position
        with wrapped(request.lakehouse.bronze, "reading"):
            (row,) = self.task.spark.sql(
                f"""SELECT min(landed_at) AS since FROM {request.lakehouse.bronze}
                WHERE {of_source(request.source_id)} AND {of_table(*request.name)}
                AND op IN ('insert', 'update', 'delete') AND epoch = {at.epoch} AND seq >= {at.seq}"""
            ).collect()
        late = datetime.now(timezone.utc) - row["since"].astimezone(timezone.utc) if row["since"] else timedelta(0)
        note = f"{late.total_seconds():,.0f} s" if row["since"] else None
        return Result("freshness", "warn", success=late <= self.freshness, note=note)

    def _request(self, name: TableName, begin: Position, end: Position) -> ApplyRequest:
        side = self.side
        return ApplyRequest(
            side.lakehouse,
            side.task,
            side.source_id,
            side.run,
            *name,
            begin=begin,
            end=end,
            batch=0,
            flavor=side.flavor,
            rules=side.rules,
        )


@dataclass(frozen=True, slots=True)
class _Table:
    """A silver table as it was at a range's end."""

    spark: SparkSession
    request: ApplyRequest
    at: Standing
    schema: TableSchema

    @property
    def rows(self) -> DataFrame:
        rows = rows_at(self.spark, self.request.target, self.at.version)
        return rows.where(self.request.target.own_rows) if self.request.target.merged else rows

    @property
    def now(self) -> Standing:
        return standing_at(self.spark, self.request.target, replace(self.request.end, epoch=self.request.end.epoch + 1))

    @property
    def keys(self) -> tuple[str, ...]:
        return self.schema.primary_key

    def touched(self, begin: Position) -> DataFrame:
        """The rows that a range from `begin` on wrote last."""
        return self.rows.where(f"NOT ({older_than(begin)}) AND {older_than(self.request.end)}")


def _compared(table: _Table, rows: DataFrame, begin: Position) -> Iterator[Result]:
    """What the range did, against what silver was before it."""
    try:
        before = standing_at(table.spark, table.request.target, begin)
    except QualityError as error:
        yield Result("row count", "warn", success=True, note=f"not judged: {error.message}")
        return
    earlier = rows_at(table.spark, table.request.target, before.version)
    if table.request.target.merged:
        earlier = earlier.where(table.request.target.own_rows)
    yield _none_of("version never goes back", versions_gone_back(rows, earlier, table.schema), table.keys)
    pieces = list(pieces_of(table.spark, table.request))
    reason = _uncountable(pieces, before)
    if reason is not None:
        yield Result("row count", "warn", success=True, note=f"not judged: {reason}")
        return
    wanted = earlier.count() + sum(map(rows_added, pieces))
    found = table.rows.count()
    yield Result("row count", "warn", success=found == wanted, note=f"{found:,}, and {wanted:,} by the log")


def _uncountable(pieces: list[RangePiece], before: Standing) -> str | None:
    if any(piece.ends_in_statement for piece in pieces):
        return "the range has statements on the table"
    until = before.commit.tag.safe_until
    if until is not None and before.position < until:
        return "some of the range may have been in silver before"
    return None


def _none_of(name: str, failing: DataFrame, keys: tuple[str, ...]) -> Result:
    """A result that is good if there is no such row."""
    with wrapped("silver", "reading"):
        count = failing.count()
        rows = failing.select(*map(quote, keys)).limit(SAMPLES).collect() if count and keys else []
    samples = tuple({key: plain(row[key]) for key in keys} for row in rows)
    return Result(name, "warn", success=not count, unexpected=count, samples=samples)


def _promises(suite: Suite, table: _Table) -> Iterator[Result]:
    """What a suite says of columns and key."""
    if not suite.contract.columns and suite.contract.key is None:
        return
    broken = broken_promises(suite.contract, table.rows, table.schema)
    yield Result("columns and key", "warn", success=not broken, note="; ".join(broken) or None)


def _not_null(suite: Suite, table: _Table) -> Iterator[Expectation]:
    for name in not_null_columns(suite.contract, table.rows.columns):
        config = ExpectationConfig(type="expect_column_values_to_not_be_null", kwargs={"column": name})
        yield Expectation(config, f"{name}: nullable: false")


def _judge_suite(
    rows: DataFrame, judged: Judged, expectations: Sequence[Expectation], keys: Sequence[str]
) -> tuple[tuple[Result, ...], tuple[Validation, ...]]:
    """What judging rows by expectations gives, and what Great Expectations says of it; nothing without any."""
    if not expectations:
        return (), ()
    # Great Expectations takes a second to be imported, and is there only where it is asked for.
    from dmdelta.quality.expectations import judge  # noqa: PLC0415

    name = ".".join(judged.table)
    results, told = judge(rows, name, expectations, keys)
    between = " ".join(str(place) for place in (judged.begin, judged.end) if place is not None)
    return tuple(results), (Validation(name, judged.scope, between, told),)
