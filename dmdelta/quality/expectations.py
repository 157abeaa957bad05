"""Evaluates expectations with Great Expectations: as a Spark expression, or on a data frame.

Only this module and data_docs.py import great_expectations.
https://docs.greatexpectations.io/docs/reference/ lists its expectations and their arguments.
"""

import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.errors import ConfigError
from dmdelta.quality.results import SAMPLES, Result, plain
from dmdelta.quality.suite import Expectation

os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")  # no telemetry


@contextmanager
def _as_a_program() -> Iterator[None]:
    """Give the main module a file during the import.

    PySpark assumes that a process whose main module has no file (`python -c`, some worker processes) runs its doctests,
    and exits the process when Spark Connect's dependencies are checked and missing.
    """
    main = sys.modules["__main__"]
    if hasattr(main, "__file__"):
        yield
        return
    main.__file__ = ""
    try:
        yield
    finally:
        del main.__file__


try:
    with _as_a_program():
        import great_expectations as gx
        from great_expectations.core.expectation_validation_result import ExpectationSuiteValidationResult
        from great_expectations.data_context.types.base import ProgressBarsConfig
        from great_expectations.exceptions import ExpectationNotFoundError
        from great_expectations.execution_engine import SparkDFExecutionEngine
        from great_expectations.expectations.registry import get_expectation_impl
        from great_expectations.validator.metric_configuration import MetricConfiguration
        from great_expectations.validator.metrics_calculator import MetricsCalculator
except ImportError as error:
    raise ConfigError(
        f"suites require Great Expectations: {error}",
        hint="pip install 'dmdelta[quality]', or remove `quality` from the spec",
    ) from error

logging.getLogger("great_expectations").setLevel(logging.CRITICAL)  # failures are in the results, too
_EVALUATED_VIEW = "dmdelta_evaluated"
_RESULT_ARGUMENTS = {"mostly", "severity"}
"""Arguments that have no influence on which rows fail."""


def assert_known(expectation: Expectation) -> None:
    """
    Raises:
        ConfigError: no expectation has this name, or it does not accept these arguments.
    """
    _instantiate(expectation)


def failing(expectation: Expectation, rows: DataFrame) -> Column:
    """An expression that is true for failing rows, never NULL.

    Args:
        expectation: a row-wise one.
        rows: an empty data frame with the table's columns.

    Raises:
        ConfigError: a column does not exist, or the arguments do not fit it.
    """
    instance = _instantiate(expectation)
    lacking = [name for name in _columns_of(expectation) if name not in rows.columns]
    if lacking:
        raise ConfigError(f"{expectation.place}: there is no column {lacking[0]}", hint=f"there are {rows.columns}")
    engine = SparkDFExecutionEngine(persist=False)
    engine.load_batch_data("rows", rows)
    arguments = {name: value for name, value in instance.configuration.kwargs.items() if name not in _RESULT_ARGUMENTS}
    domain = {name: value for name, value in arguments.items() if name in instance.domain_keys} | {"batch_id": "rows"}
    values = {name: value for name in instance.success_keys if (value := getattr(instance, name, None)) is not None}
    values = {name: value for name, value in values.items() if name not in {*domain, *_RESULT_ARGUMENTS}}
    metric = MetricConfiguration(f"{instance.map_metric}.condition", domain, values)
    try:
        condition, where, _ = MetricsCalculator(engine).get_metric(metric)
        # These filters exclude rows from the evaluation: rows outside the row_condition, rows without a value.
        counted = [F.expr(each.condition) for each in where.get("filter_conditions", [])]
        if where.get("row_condition"):
            counted.append(F.expr(_text_of(where["row_condition"])))
        for each in counted:
            condition = each & condition
        fails = F.coalesce(condition, F.lit(False))
        rows.where(fails).schema  # noqa: B018 - Spark analyses the expression now, and raises what does not fit
    except Exception as error:
        raise ConfigError(f"{expectation.place}: {expectation} cannot be evaluated: {_reason(error)}") from error
    return fails


def evaluate(
    rows: DataFrame, table: str, expectations: Sequence[Expectation], keys: Sequence[str]
) -> tuple[list[Result], ExpectationSuiteValidationResult]:
    """Evaluate expectations on rows.

    Args:
        table: the table's name, for the suite and its results.
        keys: the columns that identify rows.

    Returns:
        The results, in the order of the expectations, and Great Expectations' own result.
    """
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    # persist would cache the rows, which Spark Connect and serverless sessions do not support.
    source = context.data_sources.add_spark("dmdelta", persist=False)
    batch = source.add_dataframe_asset(table).add_batch_definition_whole_dataframe("rows")
    suite = context.suites.add(gx.ExpectationSuite(table))
    for number, expectation in enumerate(expectations):
        suite.add_expectation(_instantiate(expectation, {"number": number}))
    validation = context.validation_definitions.add(gx.ValidationDefinition(name=table, data=batch, suite=suite))
    details = validation.run(
        batch_parameters={"dataframe": rows},
        result_format={
            "result_format": "SUMMARY",
            "partial_unexpected_count": SAMPLES,
            "unexpected_index_column_names": list(keys),
        },
    )
    results: list[Any] = details.results
    by_number = {result.expectation_config.meta["number"]: result for result in results}
    ordered = [_result(expectation, by_number[n], rows, keys) for n, expectation in enumerate(expectations)]
    return ordered, details


def _instantiate(expectation: Expectation, meta: dict[str, Any] | None = None) -> Any:
    """Great Expectations' instance of an expectation; its classes share no useful type."""
    config = expectation.config
    try:
        str(config.kwargs.get("unexpected_rows_query", "")).format(batch=_EVALUATED_VIEW)
    except (LookupError, ValueError) as error:
        raise ConfigError(
            f"{expectation.place}: {config.type} has braces other than {{batch}}",
            hint="double other braces of the query: {{ and }}",
        ) from error
    try:
        return get_expectation_impl(config.type)(**config.kwargs, meta=meta)
    except ExpectationNotFoundError as error:
        raise ConfigError(
            f"{expectation.place}: there is no {config.type}", hint="use a name from Great Expectations' gallery"
        ) from error
    except ValueError as error:  # pydantic's, of the version that Great Expectations uses
        lines = "; ".join(line.strip() for line in str(error).splitlines()[1:])
        raise ConfigError(f"{expectation.place}: {config.type} does not accept these arguments: {lines}") from error


def _result(expectation: Expectation, outcome: Any, rows: DataFrame, keys: Sequence[str]) -> Result:
    name, action, values = str(expectation), expectation.config.on_failure, outcome.result or {}
    message = _exception_message(outcome.exception_info or {})
    if message is not None:
        return Result(name, action, success=False, note=_reason(message))
    query, observed = expectation.config.kwargs.get("unexpected_rows_query"), values.get("observed_value")
    if query is not None and observed:
        return Result(name, action, False, unexpected=observed, samples=tuple(_found_by(query, rows, keys)))
    if "element_count" not in values:
        note = f"observed {plain(values['observed_value'])}" if "observed_value" in values else None
        return Result(name, action, success=bool(outcome.success), note=note)
    listed = values.get("partial_unexpected_index_list") or []
    samples = tuple({key: plain(row[key]) for key in keys if key in row} for row in listed[:SAMPLES])
    return Result(name, action, bool(outcome.success), values["element_count"], values.get("unexpected_count"), samples)


def _found_by(query: str, rows: DataFrame, keys: Sequence[str]) -> Iterator[dict[str, object]]:
    """Keys of the rows that a query returns, limited: Great Expectations reports only their number, or all of them."""
    rows.createOrReplaceTempView(_EVALUATED_VIEW)
    for row in rows.sparkSession.sql(query.rstrip("; \n").format(batch=_EVALUATED_VIEW)).limit(SAMPLES).collect():
        if sample := {key: plain(row[key]) for key in keys if key in row}:
            yield sample


def _exception_message(info: Mapping[str, Any]) -> str | None:
    """The message of an exception, reported for the whole expectation or for one of its metrics."""
    for each in (info, *(inner for inner in info.values() if isinstance(inner, Mapping))):
        if each.get("raised_exception"):
            return str(each.get("exception_message"))
    return None


def _columns_of(expectation: Expectation) -> list[str]:
    kwargs = expectation.config.kwargs
    single = [kwargs[name] for name in ("column", "column_A", "column_B") if name in kwargs]
    return [*single, *kwargs.get("column_list", [])]


def _text_of(condition: Any) -> str:
    """The SQL of a row_condition, which Great Expectations wraps."""
    return str(condition["pass_through_filter"]) if isinstance(condition, Mapping) else str(condition)


def _reason(error: object) -> str:
    """The first line of an error's text, without the traceback."""
    return (str(error).strip().splitlines() or ["unknown"])[0][:300]
