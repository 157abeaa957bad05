"""Evaluates one table: the built-in expectations, and those of its suite."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

from pyspark.sql import DataFrame

from dmdelta.bronze.watermarks import exact_positions
from dmdelta.changelog.ranges import not_before, of_source, of_table
from dmdelta.config import ExpectationConfig
from dmdelta.engine.history.lineage import TablePast
from dmdelta.engine.history.states import EarlierState, PastState, range_requests
from dmdelta.engine.quality.foreign_keys import Child, ForeignKeyEvaluation
from dmdelta.engine.task.task import Task
from dmdelta.errors import QualityError
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.model.spark_sql import quote
from dmdelta.quality.builtin import (
    broken_promises,
    doubled_keys,
    has_null_key,
    is_from_nowhere,
    not_null_columns,
    versions_gone_back,
)
from dmdelta.quality.results import SAMPLES, Result, Scope, Subject, Validation, plain
from dmdelta.quality.suite import Expectation, Suite, Suites
from dmdelta.silver.apply.request import ApplyRequest, read_request
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.history.range_changes import range_profile, rows_added
from dmdelta.silver.history.repair import table_version


@dataclass(frozen=True, slots=True)
class TableResult:
    """The results of evaluating a table.

    Attributes:
        validations: Great Expectations' results; none without a suite, one per schema for row images.
        error: why the table's rows at the position are unknown; None: they were evaluated, or there was no table.
    """

    subject: Subject
    results: tuple[Result, ...]
    validations: tuple[Validation, ...] = ()
    error: QualityError | None = None

    @property
    def failed(self) -> bool:
        return not all(result.success for result in self.results)


@dataclass(frozen=True, slots=True)
class TableEvaluation:
    """The evaluation of the tables of one source.

    Attributes:
        foreign_keys: evaluates foreign keys, and has the history of the tables' states.
        freshness: maximum age of the oldest landed change that a table lacks.
    """

    task: Task
    context: SilverContext
    foreign_keys: ForeignKeyEvaluation
    freshness: timedelta
    suites: Suites

    def evaluate(self, name: TableName, scope: Scope, begin: Position | None, end: Position) -> TableResult:
        """Evaluate a table in its state after the log was applied up to `end`.

        Args:
            begin: begin of the range whose rows are evaluated; None for all rows.

        Raises:
            ConfigError: its suite does not fit the table.
            DmdeltaError: bronze, silver or the source cannot be read.
        """
        target = self.context.table(name)
        suite = self.suites.of(target.route.name)
        subject = Subject(self.context.source_id, target.route.name, scope, begin, end)
        request = read_request(self.context, name, begin or end, end)
        if scope is Scope.IMAGES:
            return self._evaluate_images(suite, subject, self._ranges(request))
        try:
            state = self.foreign_keys.history.state(request, ranged=begin is not None)
        except QualityError as error:  # the history does not go back so far, or a snapshot was reading the table
            return TableResult(subject, (_not_evaluated("rows", error.message),), error=error)
        if state is None:
            return TableResult(subject, (_not_evaluated("structure", f"the table did not exist at {end}"),))
        return self.evaluate_state(subject, state, state.touched if begin is not None else state.rows)

    def evaluate_state(self, subject: Subject, state: PastState, rows: DataFrame) -> TableResult:
        """Evaluate rows of a table's state.

        Raises:
            DmdeltaError: as `evaluate`.
        """
        suite = self.suites.of(subject.table)
        child = Child(state, rows if subject.begin is not None else None)
        expectations = (*_not_null(suite, state), *suite.expectations)
        # Many small queries, each of which one core plans: they run side by side.
        with ThreadPoolExecutor(3, thread_name_prefix="evaluate") as pool:
            built_in = pool.submit(lambda: tuple(self._built_in(state, rows)))
            keys = pool.submit(lambda: tuple(self.foreign_keys.evaluate(suite, child)))
            suite_results = pool.submit(evaluate_suite, rows, subject, expectations, state.keys)
        results, validations = suite_results.result()
        found = (*built_in.result(), *keys.result(), *_promises(suite, state), *results)
        return TableResult(subject, found, validations)

    def _evaluate_images(self, suite: Suite, subject: Subject, ranges: Sequence[ApplyRequest]) -> TableResult:
        results: list[Result] = []
        validations: list[Validation] = []
        for request in ranges:
            for piece in range_profile(self.task.spark, request).pieces(self.task.spark):
                part, keys = replace(subject, begin=piece.begin, end=piece.end), piece.batch.schema.primary_key
                part_results, part_validations = evaluate_suite(piece.images, part, suite.expectations, keys)
                results += part_results
                validations += part_validations
        return TableResult(subject, tuple(results), tuple(validations))

    def _ranges(self, request: ApplyRequest) -> list[ApplyRequest]:
        past = TablePast(self.task, self.context, request.name)
        return range_requests(past, request.begin, request.end, request)

    def _built_in(self, state: PastState, rows: DataFrame) -> Iterator[Result]:
        if state.keys:
            yield _none_of("key is unique", doubled_keys(rows, state.rows, state.schema), state.keys)
        nulls, lost = has_null_key(state.schema), is_from_nowhere(state.position)
        with wrapped("silver", "reading"):
            (counts,) = rows.selectExpr(f"count_if({nulls}) AS nulls", f"count_if({lost}) AS lost").collect()
        if state.keys:
            yield _none_of("key is not null", rows.where(nulls), state.keys, counts["nulls"])
        yield _none_of("version is of the log", rows.where(lost), state.keys, counts["lost"])
        if state.earlier is not None and state.keys:
            yield from self._compared(state, rows, state.earlier)
        yield self._fresh(state)

    def _compared(self, state: PastState, rows: DataFrame, earlier: EarlierState) -> Iterator[Result]:
        """Compare the table's state after the range with its state before."""
        if earlier.rows is None:
            yield _not_evaluated("row count", earlier.uncountable)
            return
        if set(state.keys) <= set(earlier.rows.columns):
            gone_back = versions_gone_back(rows, earlier.rows, state.schema)
            yield _none_of("version never goes back", gone_back, state.keys)
        ranges, spark = self._ranges(state.request), self.task.spark
        profile = range_profile(spark, ranges[0])
        reason = earlier.uncountable
        if ranges[0].ddl_applied_to is not None or len(ranges) > 1 or len(profile.ranges) > 1:
            reason = "the range has DDL of the table"
        if reason:
            yield _not_evaluated("row count", reason)
            return
        expected = earlier.rows.count() + sum(map(rows_added, profile.pieces(spark)))
        actual = state.every.count()
        yield Result("row count", "warn", success=actual == expected, note=f"{actual:,}; the log gives {expected:,}")

    def _fresh(self, table: PastState) -> Result:
        """How long ago the oldest landed change that silver lacks has landed."""
        request = table.request
        try:
            at = self._applied_until(request)
        except QualityError as error:
            return _not_evaluated("freshness", error.message)
        with wrapped(request.context.lakehouse.bronze, "reading"):
            (row,) = self.task.spark.sql(
                f"""SELECT min(landed_at) AS since FROM {request.context.lakehouse.bronze}
                WHERE {of_source(request.context.source_id)} AND {of_table(*request.name)}
                AND op IN ('insert', 'update', 'delete') AND epoch > 0 AND {not_before(at)}"""
            ).collect()
        lag = datetime.now(timezone.utc) - row["since"].astimezone(timezone.utc) if row["since"] else timedelta(0)
        note = f"{lag.total_seconds():,.0f} s" if row["since"] else None
        return Result("freshness", "warn", success=lag <= self.freshness, note=note)

    def _applied_until(self, request: ApplyRequest) -> Position:
        """Silver has every change of the table before this position.

        Raises:
            QualityError: as `table_version`. LakehouseError: bronze or silver cannot be read.
        """
        at = table_version(self.task.spark, request.target).position
        if at.chunk is None:
            return at
        # The rows of a load that was exact have the log before its position, which is in the load's next epoch.
        exact = exact_positions(self.task.spark, request.context.lakehouse.bronze, request.context.source_id)
        return max(at, exact.get(request.name, at))


def _not_evaluated(name: str, why: str) -> Result:
    return Result(name, "warn", success=True, note=f"not evaluated: {why}")


def _none_of(name: str, failing: DataFrame, keys: tuple[str, ...], known: int | None = None) -> Result:
    """A result that succeeds if no row is failing; `known`: their number, if it was counted already."""
    with wrapped("silver", "reading"):
        count = failing.count() if known is None else known
        rows = failing.select(*map(quote, keys)).limit(SAMPLES).collect() if count and keys else []
    samples = tuple({key: plain(row[key]) for key in keys} for row in rows)
    return Result(name, "warn", success=not count, unexpected=count, samples=samples)


def _promises(suite: Suite, table: PastState) -> Iterator[Result]:
    """The suite's contract on columns and key."""
    if not suite.contract.columns and suite.contract.key is None:
        return
    broken = broken_promises(suite.contract, table.rows, table.schema)
    yield Result("columns and key", "warn", success=not broken, note="; ".join(broken) or None)


def _not_null(suite: Suite, table: PastState) -> Iterator[Expectation]:
    for name in not_null_columns(suite.contract, table.rows.columns):
        config = ExpectationConfig(type="expect_column_values_to_not_be_null", kwargs={"column": name})
        yield Expectation(config, f"{name}: nullable: false")


def evaluate_suite(
    rows: DataFrame, subject: Subject, expectations: Sequence[Expectation], keys: Sequence[str]
) -> tuple[tuple[Result, ...], tuple[Validation, ...]]:
    """Evaluate expectations on rows: the results, and Great Expectations' validation; empty without expectations."""
    if not expectations:
        return (), ()
    # Importing Great Expectations takes a second, and it is an optional dependency.
    from dmdelta.quality.expectations import evaluate  # noqa: PLC0415

    name = ".".join(subject.table)
    results, details = evaluate(rows, name, expectations, keys)
    between = " ".join(str(place) for place in (subject.begin, subject.end) if place is not None)
    return tuple(results), (Validation(name, subject.scope, between, details),)
