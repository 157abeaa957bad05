"""Rows are judged on their way to silver: those that fail are counted, kept apart, or stop the table.

A row is in silver or in quarantine, by what it is now. So what is where depends on the rows alone, not on how the log
was cut into batches: a row that begins to fail leaves silver, one that is put right at the source comes back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.ddl.tracking.effects import EMPTYING
from dmdelta.errors import QualityError
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.schema import TableSchema
from dmdelta.silver.apply.context import ApplyContext
from dmdelta.silver.apply.quarantine import IMAGE, REASONS, Quarantine
from dmdelta.silver.apply.request import ApplyRequest
from dmdelta.silver.apply.row_checks import OnFailure, RowCheck, no_checks
from dmdelta.silver.rows.commits import Batch
from dmdelta.silver.rows.compaction import compacted, inserted_rows, keyed_changes, silver_rows
from dmdelta.silver.schema.schema_ranges import SchemaRange
from dmdelta.silver.table.target import Target


@dataclass(frozen=True, slots=True)
class CheckedBatch:
    """A batch that was judged.

    Attributes:
        failures: how many of its rows failed, by the name of what they should fulfil; only what failed.
    """

    batch: Batch
    failures: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class CheckedReload:
    """What takes the place of a silver table's rows, judged.

    Attributes:
        rows: those that are to be in silver.
        judged: how many rows were judged; 0 if nothing is expected of them.
        failures: as of a batch.
    """

    rows: DataFrame
    judged: int
    failures: Mapping[str, int]


def check_batch(batch: Batch, target: Target, checks: Sequence[RowCheck]) -> CheckedBatch:
    """Judge a batch. Rows that fail are in quarantine, or their table stops, before silver has any of the batch.

    Raises:
        QualityError: rows fail that stop their table, or they cannot be judged as it takes.
        LakehouseError: bronze cannot be read, or the quarantine not be written.
    """
    if not checks or not batch.events.row_count:
        return CheckedBatch(batch, {})
    _assert_judgeable(batch, target, checks)
    with wrapped(batch.bronze, "reading"):
        _, failures = _count(_judged_rows(batch), checks)
    _assert_none_stops(target, checks, failures)
    apart = [check for check in checks if check.on_failure is OnFailure.QUARANTINE]
    if not apart:
        return CheckedBatch(batch, failures)
    quarantine, found = Quarantine.of(target), any(check.name in failures for check in apart)
    if found or quarantine.has_rows(batch.spark):
        quarantine.update(batch.spark, _net_rows(batch, apart), batch.schema)
    return CheckedBatch(replace(batch, failing=failing_any(apart)) if found else batch, failures)


def check_reload(
    spark: SparkSession, read: DataFrame, schema: TableSchema, target: Target, checks: Sequence[RowCheck]
) -> CheckedReload:
    """Judge rows that take the place of a silver table's: those that are kept apart replace its quarantine.

    Args:
        read: rows of bronze, that a snapshot read.
        schema: the table as silver has it.

    Raises:
        QualityError: rows fail that stop their table.
        LakehouseError: bronze cannot be read, or the quarantine not be written.
    """
    rows = inserted_rows(read, schema)
    if not checks:
        return CheckedReload(rows, 0, {})
    with wrapped(target.context.lakehouse.bronze, "reading"):
        judged, failures = _count(rows, checks)
    _assert_none_stops(target, checks, failures)
    apart = [check for check in checks if check.on_failure is OnFailure.QUARANTINE]
    if not apart:
        return CheckedReload(rows, judged, failures)
    failing = failing_any(apart)
    reasoned = inserted_rows(read, schema, f"after AS {IMAGE}").withColumn(REASONS, _reasons(apart))
    Quarantine.of(target).replace_all(spark, reasoned.where(failing), schema)
    return CheckedReload(rows.where(~failing), judged, failures)


def forget_emptied(work: ApplyContext, piece: SchemaRange) -> None:
    """Ahead of the statement at the end of a piece: what it takes out of the table is not kept apart any longer.

    Raises:
        LakehouseError: the quarantine cannot be written.
    """
    assert piece.then is not None
    empties = any(isinstance(effect, EMPTYING) for effect in piece.then.effects)
    if empties and work.request.context.checks is not no_checks:
        Quarantine.of(work.request.target).clear(work.spark, piece.end)


def keeps_apart(spark: SparkSession, request: ApplyRequest) -> bool:
    """Rows of a table are in quarantine.

    Raises:
        LakehouseError: it cannot be told.
    """
    return request.context.checks is not no_checks and Quarantine.of(request.target).has_rows(spark)


def _assert_none_stops(target: Target, checks: Sequence[RowCheck], failures: Mapping[str, int]) -> None:
    """
    Raises:
        QualityError: rows failed that stop their table.
    """
    for check in checks:
        if check.on_failure is OnFailure.STOP and check.name in failures:
            raise QualityError(
                f"{failures[check.name]:,} rows of {'.'.join(target.source)} fail {check.name}",
                hint="silver has none of them: mend the suite, or let it warn or quarantine, and run again",
            )


def failing_any(checks: Sequence[RowCheck]) -> Column:
    """Whether a row fails one of them."""
    return reduce(lambda one, other: one | other, (check.failing for check in checks))


def _reasons(checks: Sequence[RowCheck]) -> Column:
    """The names of what a row fails."""
    named = (F.when(check.failing, F.lit(check.name)) for check in checks)
    return F.array_compact(F.array(*named))


def _assert_judgeable(batch: Batch, target: Target, checks: Sequence[RowCheck]) -> None:
    table = ".".join(target.source)
    if batch.events.partial:
        raise QualityError(
            f"the log has parts of rows of {table} alone, which cannot be judged",
            hint="SET GLOBAL binlog_row_image = FULL, or take the table's suite away",
        )
    if not batch.keyed and any(check.on_failure is OnFailure.QUARANTINE for check in checks):
        raise QualityError(
            f"{table} has no key: nothing tells a row in quarantine from another one like it",
            hint="let its suite warn or stop",
        )


def _judged_rows(batch: Batch) -> DataFrame:
    """The rows as they are at the batch's end; of a table without a key, each that was written."""
    if not batch.keyed:
        return inserted_rows(batch.changes.where("op <> 'delete'"), batch.schema)
    if batch.inserts_only:
        return inserted_rows(batch.changes, batch.schema)
    return silver_rows(_net_changes(batch).where("op <> 'delete'"), batch.schema)


def _net_changes(batch: Batch) -> DataFrame:
    return compacted(keyed_changes(batch.changes, batch.schema, moves=bool(batch.events.moves)), batch.schema)


def _net_rows(batch: Batch, checks: Sequence[RowCheck]) -> DataFrame:
    """The net changes as `Quarantine.update` takes them."""
    gone = "_dm_gone"
    rows = silver_rows(_net_changes(batch), batch.schema, f"op = 'delete' AS {gone}", f"after AS {IMAGE}")
    nothing = F.array().cast("array<string>")
    return rows.withColumn(REASONS, F.when(F.col(gone), nothing).otherwise(_reasons(checks)))


def _count(rows: DataFrame, checks: Sequence[RowCheck]) -> tuple[int, dict[str, int]]:
    """How many rows there are, and how many fail which check."""
    failing = [F.count_if(check.failing).alias(f"c{n}") for n, check in enumerate(checks)]
    ((judged, *found),) = rows.agg(F.count("*"), *failing).collect()
    return judged, {check.name: failures for check, failures in zip(checks, found, strict=True) if failures}
