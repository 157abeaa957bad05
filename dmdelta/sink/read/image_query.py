"""What is read of a source table's changes: positions, images, and only the other columns that are needed."""

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.changelog.ranges import XaGroup, in_group
from dmdelta.changelog.row_marks import QUARANTINED, RowMark
from dmdelta.sink.plan.table_mapping import TablePlan
from dmdelta.sink.read.literals import NESTED, written_by_spark


@dataclass(frozen=True, slots=True)
class Rendering:
    """What to query.

    Attributes:
        plan: how the table is written.
        where: condition on the bronze rows, as SQL.
        ops: their operations.
        groups: XA transactions among them, whose rows take effect at their commit.
        partial: some images hold only some of the columns.
        assigned: updates are needed as assignments, too.
        moves: updates change the source's primary key.
        mark: marks the rows that silver quarantines, which are left out; None: all are read.
    """

    plan: TablePlan
    where: str
    ops: frozenset[str]
    groups: tuple[XaGroup, ...] = ()
    partial: bool = False
    assigned: bool = False
    moves: bool = True
    mark: RowMark | None = None

    @property
    def may_move(self) -> bool:
        """Updates may change the identity."""
        return "update" in self.ops and (self.moves or not self.by_source_key)

    @property
    def by_source_key(self) -> bool:
        """The target's rows are identified by the source's primary key: bronze knows which updates change it."""
        return [column.name for column in self.plan.identity] == list(self.plan.schema.primary_key)

    @property
    def lacks_keys(self) -> bool:
        """Images that are marked as partial lack values of keys: each change has only the key of the table."""
        return self.partial and len(self.plan.keys) > 1

    @property
    def compares(self) -> bool:
        """The before image of every update is needed."""
        plan = self.plan
        return "update" in self.ops and (len(plan.keys) != 1 or not plan.identity or not self.by_source_key)


def read_images(spark: SparkSession, bronze: str, wanted: Rendering) -> DataFrame:
    """The changes: op, at, own, row, and only the image columns that are needed."""
    rows = spark.sql(f"SELECT * FROM {bronze} WHERE {wanted.where}")
    kept = rows if wanted.mark is None else _without_quarantined(wanted.mark(rows))
    return kept.selectExpr(*rendering_columns(wanted))


def _without_quarantined(marked: DataFrame) -> DataFrame:
    """The changes as if the quarantined rows did not exist: one that becomes such a row is deleted.

    An update may then find no row, and a delete may find one that was released from quarantine.
    """
    kept = marked.where(f"NOT ({QUARANTINED} AND op IN ('read', 'insert'))")
    return kept.withColumn("op", F.expr(f"IF({QUARANTINED}, 'delete', op)"))


def rendering_columns(wanted: Rendering) -> list[str]:
    """The columns of `read_images`, as SQL on rows of bronze."""
    ops, listed = wanted.ops, ["op", f"{_effective(wanted.groups)} AS at", "seq AS own", "row"]
    if ops - {"delete"}:
        listed.append(f"{_present('after')} AS after")
    if "delete" in ops or wanted.may_move or wanted.compares:
        needed = "op <> 'insert'" if wanted.compares else "op = 'delete' OR key_changed"
        listed += [f"{_present(f'IF({needed}, before, NULL)')} AS before"]
    if wanted.may_move:
        listed.append("key_changed")
    if wanted.partial:
        listed.append("image")
    nested = [(n, one) for n, (_, one) in enumerate(wanted.plan.columns) if one.type in NESTED]
    if nested:
        images = ("after", "before") if not wanted.plan.identity else ("after",)
        listed += [f"{written_by_spark(image, one)} AS {image}_{n}" for n, one in nested for image in images]
    return listed


def _present(image: str) -> str:
    """PySpark 4.2 cannot convert a NULL VARIANT to Arrow, but can convert VARIANT's own null."""
    return f"coalesce({image}, parse_json('null'))"


def _effective(groups: tuple[XaGroup, ...]) -> str:
    if not groups:
        return "seq"
    cases = " ".join(f"WHEN {in_group(group)} THEN {group.at[1]}L" for group in groups)
    return f"CASE WHEN xid IS NULL THEN seq {cases} ELSE seq END"
