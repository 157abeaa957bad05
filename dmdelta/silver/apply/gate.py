"""Evaluate row expectations before rows reach silver: rows that fail are counted, are quarantined, or stop the table.

A row is in silver or in quarantine, according to its current values. The result therefore depends on the rows alone,
not on the batch boundaries. A row that starts to fail leaves silver; a row that the source repairs returns to it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.ddl.tracking.effects import Altered, Effect
from dmdelta.errors import QualityError, SchemaError
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.silver.apply.context import ApplyContext
from dmdelta.silver.apply.quarantine import IMAGE, REASONS, Quarantine
from dmdelta.silver.apply.request import ApplyRequest
from dmdelta.silver.apply.row_checks import OnFailure, RowCheck, no_checks
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.rows.batch import Batch
from dmdelta.silver.rows.compaction import compacted, inserted_rows, keyed_changes, silver_rows
from dmdelta.silver.schema.key_texts import changes_key_text
from dmdelta.silver.table.target import Target


@dataclass(frozen=True, slots=True)
class CheckedBatch:
    """A batch whose expectations were evaluated.

    Attributes:
        failures: the number of failing rows by the name of the expectation; only expectations that failed.
    """

    batch: Batch
    failures: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class CheckedReload:
    """The rows that replace a silver table's, after evaluation.

    Attributes:
        rows: the rows that go to silver.
        evaluated: the number of rows that were evaluated; 0 without expectations.
        failures: as for a batch.
    """

    rows: DataFrame
    evaluated: int
    failures: Mapping[str, int]


def check_batch(batch: Batch, request: ApplyRequest) -> CheckedBatch:
    """Evaluate a batch. Failing rows are quarantined, or stop the table, before silver gets any row of the batch.

    Raises:
        QualityError: rows fail an expectation that stops the table, or the batch cannot be evaluated.
        LakehouseError: bronze cannot be read, or the quarantine cannot be written.
    """
    if not batch.events.row_count:
        return CheckedBatch(batch, {})
    target, failures = request.target, dict[str, int]()
    checks = request.context.checks(target, batch.schema)
    if checks:
        assert_evaluable(target, checks, keyed=batch.keyed, partial=bool(batch.events.partial))
        with wrapped(batch.bronze, "reading"):
            _, failures = _count(_evaluated_rows(batch), checks)
        _assert_none_stops(target, checks, failures)
    quarantining = [check for check in checks if check.on_failure is OnFailure.QUARANTINE]
    if not quarantining:
        _clear_changed(batch, request)
        return CheckedBatch(batch, failures)
    quarantine, fails = Quarantine.of(target), any(check.name in failures for check in quarantining)
    if fails or quarantine.has_rows(batch.spark):
        quarantine.update(batch.spark, _net_rows(batch, quarantining), batch.schema)
    return CheckedBatch(replace(batch, failing=failing_any(quarantining)) if fails else batch, failures)


def _clear_changed(batch: Batch, request: ApplyRequest) -> None:
    """Remove the batch's rows from the quarantine of a table whose expectations no longer quarantine rows.

    Raises:
        QualityError: the batch does not have the key and the values of each row.
        LakehouseError: the quarantine cannot be read or written.
    """
    context, target = request.context, request.target
    if not may_have_quarantined(context, target):
        return
    quarantine = Quarantine.of(target)
    if not quarantine.has_rows(batch.spark):
        context.unquarantined.add(_quarantine_key(target))
        return
    if not batch.keyed or batch.events.partial:
        table = ".".join(target.source)
        raise QualityError(
            f"{table} has quarantined rows, which changes without a key or with partial row images cannot reach",
            hint=f"release or discard them: dmdelta quality release SPEC --table {table} (--force, --discard)",
        )
    quarantine.update(batch.spark, _net_rows(batch, ()), batch.schema)


def check_reload(
    spark: SparkSession, read: DataFrame, schema: TableSchema, context: SilverContext, target: Target
) -> CheckedReload:
    """Evaluate rows that replace a silver table's. The failing rows replace the contents of its quarantine.

    Args:
        read: rows of bronze that a snapshot read.
        schema: the table's structure in silver.

    Raises:
        QualityError: rows fail an expectation that stops the table.
        LakehouseError: bronze cannot be read, or the quarantine cannot be written.
    """
    rows, checks = inserted_rows(read, schema), context.checks(target, schema)
    evaluated, failures = 0, dict[str, int]()
    if checks:
        with wrapped(context.lakehouse.bronze, "reading"):
            evaluated, failures = _count(rows, checks)
        _assert_none_stops(target, checks, failures)
    quarantining = [check for check in checks if check.on_failure is OnFailure.QUARANTINE]
    if not quarantining:
        if has_quarantined(spark, context, target):
            Quarantine.of(target).forget(spark)
        return CheckedReload(rows, evaluated, failures)
    failing = failing_any(quarantining)
    reasoned = inserted_rows(read, schema, f"after AS {IMAGE}").withColumn(REASONS, _reasons(quarantining))
    Quarantine.of(target).replace_all(spark, reasoned.where(failing), schema)
    return CheckedReload(rows.where(~failing), evaluated, failures)


def clear_emptied(work: ApplyContext, before: Position) -> None:
    """Remove rows from the quarantine that a statement at `before` deletes. Call it directly before silver's commit.

    Raises:
        LakehouseError: the quarantine cannot be written.
    """
    if has_quarantined(work.spark, work.request.context, work.request.target):
        Quarantine.of(work.request.target).clear(work.spark, before)


def assert_keys_kept(work: ApplyContext, effects: Iterable[Effect]) -> None:
    """Assert that the quarantine finds its rows by their keys after a statement that does not empty the table.

    A row that it does not find with the row's next change stays in quarantine for good.

    Raises:
        SchemaError: it changes the key's columns, their names, or the values or their texts.
        LakehouseError: the quarantine cannot be read.
    """
    context, target = work.request.context, work.request.target
    differ = partial(changes_key_text, mariadb=context.flavor == "mariadb")
    changed = [effect for effect in effects if isinstance(effect, Altered) and differ(effect.before, effect.after)]
    if not changed or not context.keeps_quarantine or not has_quarantined(work.spark, context, target):
        return
    after = target.silver_schema(changed[-1].after)
    # A snapshot may have read rows after the statement.
    if any(differ(schema, after) for schema in Quarantine.of(target).structures(work.spark)):
        command = f"dmdelta quality release SPEC --table {'.'.join(target.source)}; --force, --discard"
        way = f"release or discard them first ({command})" if context.can_release else "replay it without --check"
        raise SchemaError(f"it changes the primary key, and the table has quarantined rows: {way}")


def may_have_quarantined(context: SilverContext, target: Target) -> bool:
    """Whether rows of a table can be in quarantine, without a look-up."""
    return context.checks is not no_checks and _quarantine_key(target) not in context.unquarantined


def has_quarantined(spark: SparkSession, context: SilverContext, target: Target) -> bool:
    """Whether rows of a table are in quarantine, also those that its expectations no longer quarantine.

    Raises:
        LakehouseError: the quarantine cannot be read.
    """
    return may_have_quarantined(context, target) and Quarantine.of(target).has_rows(spark)


def _quarantine_key(target: Target) -> tuple[str, TableName]:
    return Quarantine.of(target).place, target.source


def _assert_none_stops(target: Target, checks: Sequence[RowCheck], failures: Mapping[str, int]) -> None:
    """
    Raises:
        QualityError: rows fail an expectation that stops the table.
    """
    for check in checks:
        if check.on_failure is OnFailure.STOP and check.name in failures:
            raise QualityError(
                f"{failures[check.name]:,} rows of {'.'.join(target.source)} fail {check.name}",
                hint="none of them is in silver: fix the suite, or use the action warn or quarantine, and run again",
            )


def failing_any(checks: Sequence[RowCheck]) -> Column:
    """Whether a row fails at least one check."""
    return reduce(lambda one, other: one | other, (check.failing for check in checks))


def _reasons(checks: Sequence[RowCheck]) -> Column:
    """The names of the checks that a row fails."""
    named = (F.when(check.failing, F.lit(check.name)) for check in checks)
    return F.array_compact(F.array(*named))


def assert_evaluable(target: Target, checks: Sequence[RowCheck], *, keyed: bool, partial: bool) -> None:
    """
    Args:
        partial: some images contain only some of the columns.

    Raises:
        QualityError: the checks cannot be evaluated for each row.
    """
    table = ".".join(target.source)
    if partial:
        raise QualityError(
            f"the binlog contains partial row images of {table}: its expectations cannot be evaluated",
            hint="SET GLOBAL binlog_row_image = FULL, or remove the table's suite",
        )
    if not keyed and any(check.on_failure is OnFailure.QUARANTINE for check in checks):
        raise QualityError(
            f"{table} has no primary key: equal rows in quarantine cannot be distinguished",
            hint="use the action warn or stop in its suite",
        )


def _evaluated_rows(batch: Batch) -> DataFrame:
    """The rows as of the batch's end; for a table without a key, every row that was written."""
    if not batch.keyed:
        return inserted_rows(batch.changes.where("op <> 'delete'"), batch.schema)
    if batch.inserts_only:
        return inserted_rows(batch.changes, batch.schema)
    return silver_rows(_net_changes(batch).where("op <> 'delete'"), batch.schema)


def _net_changes(batch: Batch) -> DataFrame:
    return compacted(keyed_changes(batch.changes, batch.schema, moves=bool(batch.events.moves)), batch.schema)


def _net_rows(batch: Batch, checks: Sequence[RowCheck]) -> DataFrame:
    """The net changes with the columns that `Quarantine.update` takes."""
    deleted = "_dm_deleted"
    rows = silver_rows(_net_changes(batch), batch.schema, f"op = 'delete' AS {deleted}", f"after AS {IMAGE}")
    nothing = F.array().cast("array<string>")
    reasons = _reasons(checks) if checks else nothing
    return rows.withColumn(REASONS, F.when(F.col(deleted), nothing).otherwise(reasons))


def _count(rows: DataFrame, checks: Sequence[RowCheck]) -> tuple[int, dict[str, int]]:
    """The number of rows, and the number of failing rows by check."""
    failing = [F.count_if(check.failing).alias(f"c{n}") for n, check in enumerate(checks)]
    ((evaluated, *counts),) = rows.agg(F.count("*"), *failing).collect()
    return evaluated, {check.name: failures for check, failures in zip(checks, counts, strict=True) if failures}
