"""`dmdelta replay --check`: evaluates the result of a replay before writing it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.ddl.types.silver_types import SHARD
from dmdelta.engine.apply.row_checks import build_checks
from dmdelta.engine.history.states import PastState
from dmdelta.engine.quality.evaluation import TableEvaluation
from dmdelta.errors import QualityError
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.model.spark_sql import literal, quote
from dmdelta.quality.results import Result, ResultStore, Scope, Subject
from dmdelta.quality.suite import Expectation
from dmdelta.silver.apply.quarantine import silver_rows_of, structure_texts
from dmdelta.silver.apply.request import ApplyRequest
from dmdelta.silver.apply.row_checks import OnFailure, RowCheck
from dmdelta.silver.table.target import Target


@dataclass(frozen=True, slots=True)
class ReplayCheck:
    """Evaluates the results of a source's replays, and stores the outcome."""

    evaluation: TableEvaluation
    store: ResultStore

    def guard(self, name: TableName) -> Callable[[ApplyRequest], ApplyRequest]:
        """A function that makes a replay request send failing rows to its own quarantine, as a running task does."""
        silver = self.evaluation.context.table(name).route.name
        expected = [each for each in self.evaluation.suites.of(silver).row_wise if _quarantines(each)]
        built: dict[TableSchema, Sequence[RowCheck]] = {}

        def checks(_: Target, schema: TableSchema) -> Sequence[RowCheck]:
            if schema not in built:
                # Where an older schema lacks a column of an expectation, only the final rows are evaluated.
                built[schema] = list(build_checks(self.evaluation.task.spark, expected, schema, skip_unfit=True))
            return built[schema]

        if not expected:
            return lambda request: request
        return lambda request: replace(request, context=replace(request.context, checks=checks, can_release=False))

    def assert_passes(
        self, name: TableName, scope: Scope, state: PastState, quarantined: DataFrame | None
    ) -> list[Result]:
        """Evaluate the rows that a replay produces. Returns the failing results without the action `stop`.

        Args:
            scope: RANGE: evaluate the rows that the range wrote; otherwise all rows.
            quarantined: rows of the replay's quarantine; None: there are none.

        Raises:
            QualityError: an expectation with the action `stop` fails.
            DmdeltaError: bronze, silver or the source cannot be read.
        """
        begin = state.request.begin if scope is Scope.RANGE else None
        subject = Subject(
            state.request.context.source_id, state.request.target.route.name, Scope.REPLAY_CHECK, begin, state.position
        )
        table_result = self.evaluation.evaluate_state(
            subject, state, state.touched if begin is not None else state.rows
        )
        results = [_with_quarantined(result, quarantined) for result in table_result.results]
        self.store.add(subject, results)
        failing = [result for result in results if not result.success]
        stopping = [result for result in failing if result.on_failure == OnFailure.STOP.value]
        if stopping:
            raise QualityError(
                f"the replay of {'.'.join(name)} fails {'; '.join(map(shown, stopping))}",
                hint="nothing was written: correct the source or the suite, then replay again",
            )
        return failing


def shown(result: Result) -> str:
    """A result as one line: the expectation, and how many of the evaluated rows fail."""
    rows = f"{result.unexpected:,} rows" if result.unexpected is not None else result.note or "the table"
    many = f" of {result.evaluated:,}" if result.evaluated is not None and result.unexpected is not None else ""
    return f"{result.expectation} ({result.on_failure}): {rows}{many}"


def adopted(quarantined: DataFrame, made_for: Target, target: Target, schema: TableSchema) -> DataFrame:
    """The rows of a replay's quarantine, in the form of the silver table's quarantine.

    Args:
        made_for: the table that the replay wrote.
        schema: the source table's schema.
    """
    spark = quarantined.sparkSession
    with wrapped(target.place, "reading"):
        texts = structure_texts(quarantined)
    seen = json.loads(target.silver_schema(schema).to_json())
    constants = seen["columns"][len(seen["columns"]) - len(target.constants) :]
    pairs = [(text, _renamed(text, len(made_for.constants), target, constants)) for text in texts]
    names = spark.createDataFrame(pairs, "_dm_made STRING, _dm_structure STRING")
    key = "row_key"
    if target.merged:
        shard = json.dumps({SHARD: str(target.shard)}, ensure_ascii=False, separators=(",", ":"))[1:]
        key = f"concat(substr(row_key, 1, length(row_key) - 1), ',', {literal(shard)})"
    columns = [
        f"{key} AS row_key"
        if name == "row_key"
        else "_dm_structure AS structure"
        if name == "structure"
        else quote(name)
        for name in quarantined.columns
    ]
    return quarantined.join(names, quarantined["structure"] == names["_dm_made"]).selectExpr(*columns)


def rows_apart(quarantined: DataFrame, schema: TableSchema, live: DataFrame) -> DataFrame:
    """The rows of a quarantine with the columns of silver (`live`)."""
    return silver_rows_of(quarantined, schema).select(*map(quote, live.columns))


def _quarantines(expectation: Expectation) -> bool:
    return expectation.config.on_failure == OnFailure.QUARANTINE.value


def _with_quarantined(result: Result, quarantined: DataFrame | None) -> Result:
    """A result that also counts the rows in the replay's quarantine."""
    if quarantined is None or result.on_failure != OnFailure.QUARANTINE.value:
        return result
    with wrapped("the replay's quarantine", "reading"):
        count = quarantined.where(F.array_contains("reasons", F.lit(result.expectation))).count()
    if not count:
        return result
    evaluated = result.evaluated + count if result.evaluated is not None else None
    return replace(
        result,
        success=False,
        evaluated=evaluated,
        unexpected=(result.unexpected or 0) + count,
        note="quarantined",
    )


def _renamed(text: str, constants: int, target: Target, own: Sequence[object]) -> str:
    """A schema's JSON with the silver table's name and its constant columns."""
    fields = json.loads(text)
    columns = fields["columns"][: len(fields["columns"]) - constants]
    fields |= {"schema": target.route.name[0], "table": target.route.name[1], "columns": [*columns, *own]}
    if target.merged:
        fields["primary_key"] = [*fields["primary_key"], SHARD]
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
