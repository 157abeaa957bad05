"""The row-level expectations of the suites as Spark expressions, built once per table schema."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from dmdelta.ddl.types.silver_types import silver_columns
from dmdelta.errors import ConfigError
from dmdelta.logging import get_logger
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.quality.results import Result, ResultStore, Scope, Subject
from dmdelta.quality.suite import Expectation, Suites
from dmdelta.silver.apply.row_checks import OnFailure, RowCheck
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.table.target import Target


@dataclass(slots=True)
class TableChecks:
    """The `RowChecks` of a task."""

    spark: SparkSession
    suites: Suites
    _checks: dict[TableSchema, Sequence[RowCheck]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, target: Target, schema: TableSchema) -> Sequence[RowCheck]:
        """
        Raises:
            ConfigError: an expectation does not fit the table.
        """
        expectations = self.suites.of(target.route.name).row_wise
        if not expectations:
            return ()
        with self._lock:
            if schema not in self._checks:
                self._checks[schema] = list(build_checks(self.spark, expectations, schema))
            return self._checks[schema]


def build_checks(
    spark: SparkSession, expectations: Iterable[Expectation], schema: TableSchema, *, skip_unfit: bool = False
) -> Iterator[RowCheck]:
    """The checks of expectations for a table's structure in silver.

    Args:
        skip_unfit: leave out expectations that do not fit the structure, instead of raising the error.

    Raises:
        ConfigError: an expectation does not fit the table.
    """
    # Importing Great Expectations takes a second, and it is an optional dependency.
    from dmdelta.quality.expectations import failing  # noqa: PLC0415

    columns = ", ".join(f"CAST(NULL AS {kind}) AS {quote(name)}" for name, kind in silver_columns(schema).items())
    empty = spark.sql(f"SELECT {columns} WHERE false")
    for each in expectations:
        try:
            condition = failing(each, empty)
        except ConfigError:
            if not skip_unfit:
                raise
            continue
        yield RowCheck(str(each), condition, OnFailure(each.config.on_failure))


log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class FailureLog:
    """Stores the expectation failures that are found when a range is applied to a table, or the table is reloaded."""

    store: ResultStore
    context: SilverContext
    suites: Suites

    def __call__(self, name: TableName, end: Position, evaluated: int, failures: Mapping[str, int]) -> None:
        """Report how many of the `evaluated` rows up to a position fail each expectation.

        Raises:
            LakehouseError: the result cannot be written.
        """
        target = self.context.table(name)
        failed = []
        for expectation in self.suites.of(target.route.name).row_wise:
            check, action = str(expectation), expectation.config.on_failure
            rows = failures.get(check)
            if rows is not None:
                log.warning("expectation failed", table=".".join(name), expectation=check, rows=rows, done=action)
                failed.append(Result(check, action, success=False, evaluated=evaluated, unexpected=rows))
        self.store.add(Subject(self.context.source_id, target.route.name, Scope.RUN, None, end), failed)
