"""Rows of silver that refer to a missing row; texts are compared under the source's collations."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.model.schema import ConstantColumn, ForeignKey, TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.model.type_names import TEXTUAL
from dmdelta.rules.expressions.collations import Collation, collation_of
from dmdelta.rules.expressions.values import Refusal


@dataclass(frozen=True, slots=True)
class Reference:
    """A foreign key, and how the source compares its columns.

    Attributes:
        collations: those of the child's texts, by column; values of other columns are compared byte by byte.
        undecidable: why values that differ byte by byte may still be equal to the source; '' if they may not.
    """

    key: ForeignKey
    collations: Mapping[str, Collation] = field(default_factory=dict)
    undecidable: str = ""

    @property
    def own(self) -> list[str]:
        """The child's columns (SQL), in a form that is equal for values that the source treats as equal."""
        return [self._compared(own, own) for own, _ in self.key.columns]

    @property
    def theirs(self) -> list[str]:
        """The parent's columns (SQL), in the same form."""
        return [self._compared(own, theirs) for own, theirs in self.key.columns]

    def _compared(self, own: str, name: str) -> str:
        collation = self.collations.get(own)
        return quote(name) if collation is None else collation.comparable(quote(name))


def plan_reference(key: ForeignKey, child: TableSchema) -> Reference:
    """How a foreign key's columns are compared: by the collations of the child's; InnoDB requires the same of both."""
    collations: dict[str, Collation] = {}
    undecidable = []
    columns = {column.name: column for column in child.columns if not isinstance(column, ConstantColumn)}
    for own, _ in key.columns:
        column = columns.get(own)
        if column is None or column.type not in TEXTUAL:
            continue
        try:
            collations[own] = collation_of(column.collation, column.charset, own)
        except Refusal:
            known = f"Spark does not support the collation {column.collation} of {own}"
            undecidable.append(known if column.collation else f"the collation of {own} is unknown")
    return Reference(key, collations, "; ".join(undecidable))


def orphans(rows: DataFrame, parents: DataFrame, reference: Reference) -> DataFrame:
    """Rows that refer to a row which `parents` lacks; rows with a NULL in the foreign key refer to none."""
    return referring(rows.where(_refers(reference)), parents, reference, "left_anti")


def count_orphans(
    rows: DataFrame, parents: DataFrame, quarantined: DataFrame | None, reference: Reference
) -> tuple[int, int, int]:
    """By one query: rows that refer to something, those whose parent does not exist, and those whose is quarantined."""
    marked = rows.where(_refers(reference))
    for mark, others in (("_dm_in_silver", parents), ("_dm_quarantined", quarantined)):
        if others is None:
            marked = marked.withColumn(mark, F.lit(None).cast("boolean"))
            continue
        names = [f"{mark}_{n}" for n in range(len(reference.key.columns))]
        keys = [f"{value} AS {name}" for name, value in zip(names, reference.theirs, strict=True)]
        same = [F.expr(value) == F.col(name) for name, value in zip(names, reference.own, strict=True)]
        marked = marked.join(others.selectExpr(*keys).distinct().selectExpr("*", f"true AS {mark}"), same, "left")
    (counts,) = marked.selectExpr(
        "count(*) AS evaluated",
        "count_if(_dm_in_silver IS NULL AND _dm_quarantined IS NULL) AS orphans",
        "count_if(_dm_in_silver IS NULL AND _dm_quarantined) AS waiting",
    ).collect()
    return counts["evaluated"], counts["orphans"], counts["waiting"]


def referring(rows: DataFrame, parents: DataFrame, reference: Reference, join: str) -> DataFrame:
    """Rows that refer to one of `parents` (`left_semi`), or to none of them (`left_anti`)."""
    referenced = parents.selectExpr(*(f"{value} AS _dm_p{n}" for n, value in enumerate(reference.theirs)))
    same = [F.expr(value) == F.col(f"_dm_p{n}") for n, value in enumerate(reference.own)]
    return rows.join(referenced, same, join)


def _refers(reference: Reference) -> str:
    """Whether a row refers to another one, as SQL."""
    return " AND ".join(f"{quote(own)} IS NOT NULL" for own, _ in reference.key.columns)
