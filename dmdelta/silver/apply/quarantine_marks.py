"""Silver's decision about single rows for other readers of bronze: whether a row is in quarantine."""

from dataclasses import dataclass
from functools import partial as bound

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.changelog.row_marks import QUARANTINED, RowMark
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.silver.apply.gate import assert_evaluable, failing_any
from dmdelta.silver.apply.row_checks import OnFailure
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.rows.compaction import inserted_rows

_CHANGE = "_dm_change"


@dataclass(frozen=True, slots=True)
class QuarantineMarks:
    """The `Quarantining` of a source, by the expectations that silver evaluates."""

    context: SilverContext

    def __call__(self, name: TableName, schema: TableSchema, *, partial: bool) -> RowMark | None:
        """As `Quarantining`."""
        target = self.context.table(name)
        in_silver = target.silver_schema(schema)
        checks = [one for one in self.context.checks(target, in_silver) if one.on_failure is OnFailure.QUARANTINE]
        if not checks:
            return None
        assert_evaluable(target, checks, keyed=bool(schema.primary_key), partial=partial)
        return bound(_marked, schema=in_silver, failing=failing_any(checks))


def _marked(changes: DataFrame, schema: TableSchema, failing: Column) -> DataFrame:
    # The changes are one column meanwhile: the table's columns may have bronze's names.
    rows = inserted_rows(changes, schema, f"struct(*) AS {_CHANGE}")
    marked = rows.withColumn(QUARANTINED, (F.col(f"{_CHANGE}.op") != "delete") & failing)
    return marked.selectExpr(f"{_CHANGE}.*", QUARANTINED)
