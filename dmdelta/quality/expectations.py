"""Great Expectations at work: what an expectation means, as an expression of Spark's or judged on a data frame.

This module and data_docs.py alone import great_expectations.
https://docs.greatexpectations.io/docs/reference/ has its names and arguments.
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

os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")  # it would tell its makers what it is used for


@contextmanager
def _as_a_program() -> Iterator[None]:
    """PySpark takes a process whose main module has no file (`python -c`, a worker of others) for its own doctests.

    It ends the process then, as soon as a library checks for Spark Connect and does not find it.
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
        f"suites need Great Expectations: {error}", hint="pip install 'dmdelta[quality]', or take `quality` out"
    ) from error

logging.getLogger("great_expectations").setLevel(logging.CRITICAL)  # what fails is in the results, too
_JUDGED = "dmdelta_judged"
_OF_THE_VERDICT = {"mostly", "severity"}
"""Arguments that do not say which rows fail."""


def assert_known(expectation: Expectation) -> None:
    """
    Raises:
        ConfigError: no expectation has this name, or it does not take these arguments.
    """
    _made(expectation)


def failing(expectation: Expectation, rows: DataFrame) -> Column:
    """Whether a row fails, as an expression of its columns; never NULL.

    Args:
        expectation: a row-wise one.
        rows: what the columns are, with no rows.

    Raises:
        ConfigError: a column is not there, or the arguments do not fit it.
    """
    made = _made(expectation)
    lacking = [name for name in _columns_of(expectation) if name not in rows.columns]
    if lacking:
        raise ConfigError(f"{expectation.place}: there is no column {lacking[0]}", hint=f"there are {rows.columns}")
    engine = SparkDFExecutionEngine(persist=False)
    engine.load_batch_data("rows", rows)
    arguments = {name: value for name, value in made.configuration.kwargs.items() if name not in _OF_THE_VERDICT}
    domain = {name: value for name, value in arguments.items() if name in made.domain_keys} | {"batch_id": "rows"}
    values = {name: value for name in made.success_keys if (value := getattr(made, name, None)) is not None}
    values = {name: value for name, value in values.items() if name not in {*domain, *_OF_THE_VERDICT}}
    metric = MetricConfiguration(f"{made.map_metric}.condition", domain, values)
    try:
        condition, where, _ = MetricsCalculator(engine).get_metric(metric)
        # What is left out of the judgement is so before the condition: rows of another kind, rows without a value.
        counted = [F.expr(each.condition) for each in where.get("filter_conditions", [])]
        if where.get("row_condition"):
            counted.append(F.expr(_text_of(where["row_condition"])))
        for each in counted:
            condition = each & condition
        found = F.coalesce(condition, F.lit(False))
        rows.where(found).schema  # noqa: B018 - Spark tells now what does not fit
    except Exception as error:
        raise ConfigError(f"{expectation.place}: {expectation} cannot be judged: {_reason(error)}") from error
    return found


def evaluate(
    rows: DataFrame, table: str, expectations: Sequence[Expectation], keys: Sequence[str]
) -> tuple[list[Result], ExpectationSuiteValidationResult]:
    """Judge rows.

    Args:
        table: what they are called.
        keys: the columns that tell rows apart.

    Returns:
        What was found, in the order of the expectations, and what Great Expectations itself says.
    """
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    # persist would cache the rows: a session on Connect or serverless has no cache.
    source = context.data_sources.add_spark("dmdelta", persist=False)
    batch = source.add_dataframe_asset(table).add_batch_definition_whole_dataframe("rows")
    suite = context.suites.add(gx.ExpectationSuite(table))
    for number, expectation in enumerate(expectations):
        suite.add_expectation(_made(expectation, {"number": number}))
    validation = context.validation_definitions.add(gx.ValidationDefinition(name=table, data=batch, suite=suite))
    told = validation.run(
        batch_parameters={"dataframe": rows},
        result_format={
            "result_format": "SUMMARY",
            "partial_unexpected_count": SAMPLES,
            "unexpected_index_column_names": list(keys),
        },
    )
    results: list[Any] = told.results
    by_number = {result.expectation_config.meta["number"]: result for result in results}
    found = [_result(expectation, by_number[n], rows, keys) for n, expectation in enumerate(expectations)]
    return found, told


def _made(expectation: Expectation, meta: dict[str, Any] | None = None) -> Any:
    """The expectation as Great Expectations has it, whose kinds have little in common for a type checker."""
    config = expectation.config
    try:
        str(config.kwargs.get("unexpected_rows_query", "")).format(batch=_JUDGED)
    except (LookupError, ValueError) as error:
        raise ConfigError(
            f"{expectation.place}: {config.type} has braces that are not {{batch}}",
            hint="other braces of a query are doubled: {{ and }}",
        ) from error
    try:
        return get_expectation_impl(config.type)(**config.kwargs, meta=meta)
    except ExpectationNotFoundError as error:
        raise ConfigError(
            f"{expectation.place}: there is no {config.type}", hint="its names are those of Great Expectations"
        ) from error
    except ValueError as error:  # pydantic's, of the version that Great Expectations brings
        lines = "; ".join(line.strip() for line in str(error).splitlines()[1:])
        raise ConfigError(f"{expectation.place}: {config.type} does not take these arguments: {lines}") from error


def _result(expectation: Expectation, told: Any, judged: DataFrame, keys: Sequence[str]) -> Result:
    name, action, found = str(expectation), expectation.config.on_failure, told.result or {}
    trouble = _trouble(told.exception_info or {})
    if trouble is not None:
        return Result(name, action, success=False, note=_reason(trouble))
    query, observed = expectation.config.kwargs.get("unexpected_rows_query"), found.get("observed_value")
    if query is not None and observed:
        return Result(name, action, False, unexpected=observed, samples=tuple(_found_by(query, judged, keys)))
    if "element_count" not in found:
        note = f"observed {plain(found['observed_value'])}" if "observed_value" in found else None
        return Result(name, action, success=bool(told.success), note=note)
    listed = found.get("partial_unexpected_index_list") or []
    samples = tuple({key: plain(row[key]) for key in keys if key in row} for row in listed[:SAMPLES])
    return Result(name, action, bool(told.success), found["element_count"], found.get("unexpected_count"), samples)


def _found_by(query: str, rows: DataFrame, keys: Sequence[str]) -> Iterator[dict[str, object]]:
    """Keys of rows that a query finds: Great Expectations tells how many there are, or every one of them."""
    rows.createOrReplaceTempView(_JUDGED)
    for row in rows.sparkSession.sql(query.rstrip("; \n").format(batch=_JUDGED)).limit(SAMPLES).collect():
        if sample := {key: plain(row[key]) for key in keys if key in row}:
            yield sample


def _trouble(told: Mapping[str, Any]) -> str | None:
    """Why something could not be judged: told for the whole expectation, or for each figure that it needs."""
    for each in (told, *(inner for inner in told.values() if isinstance(inner, Mapping))):
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
    """The first line: what follows is a traceback."""
    return (str(error).strip().splitlines() or ["unknown"])[0][:300]
