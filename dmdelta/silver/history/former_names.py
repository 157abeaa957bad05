"""Table lineage: the names that a table had, from the RENAME statements in bronze.

After `RENAME TABLE log TO audit` the history of `audit` is that of `log`; a swap through a temporary name exchanges two
histories. Statements that the rules ignore, and the cut-over of an online DDL, move no rows in silver and are not part
of the lineage.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Row, SparkSession

from dmdelta.changelog.context import SourceContext
from dmdelta.changelog.landed_structures import landed_structures
from dmdelta.changelog.ranges import before, of_source
from dmdelta.changelog.xa import AT, position_of
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.silver.apply.renames import Renaming, plan_renamings
from dmdelta.silver.schema.range_profile import StructureEvent, TableEvents

NewestRead = Callable[[TableName, Position], Position | None]
"""The position from which a table's log is applied after its newest ad-hoc snapshot before a position; None without."""


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A name that a table had.

    Attributes:
        end: the position after the last event under this name.
        renaming: the statement that gave the table this name, or freed the name; None if the table was created under
            this name.
    """

    name: TableName
    end: Position
    renaming: Renaming | None = None

    @property
    def begin(self) -> Position | None:
        """The position of that statement; None if the table was created under this name."""
        return self.renaming.at if self.renaming is not None else None


def plan_lineage(
    renamings: Sequence[Renaming], name: TableName, end: Position, newest_read: NewestRead
) -> tuple[Ancestor, ...]:
    """The names of the table that has the name `name` at `end`, oldest first; the last one is `name`.

    An ad-hoc snapshot starts a new history: RENAMEs before it are not part of the lineage.

    Args:
        renamings: those of the source, in log order.
    """
    ancestors: list[Ancestor] = []
    while True:
        renaming = next((one for one in reversed(renamings) if one.at < end and name in one.sources), None)
        read = newest_read(name, end) if renaming is not None else None
        if renaming is not None and read is not None and renaming.at < read:
            renaming = None
        ancestors.append(Ancestor(name, end, renaming))
        source = renaming.sources[name] if renaming is not None else None
        if renaming is None or source is None:
            return tuple(reversed(ancestors))
        name, end = source, renaming.at


def renamings_before(spark: SparkSession, log: SourceContext, end: Position | None) -> list[Renaming]:
    """The statements before `end` (None: all) that rename tables of a source, in log order.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    return renamings_among(landed_structures(spark, log), spark, log, end)


def renamings_among(
    landed: Sequence[Mapping[str, Any]] | None, spark: SparkSession, log: SourceContext, end: Position | None
) -> list[Renaming]:
    """The same.

    Args:
        landed: the result of `landed_structures`; None: Spark reads the statements.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    rows: Sequence[Row | Mapping[str, Any]] = [row for row in landed or () if _may_rename(row, end)]
    if landed is None:
        rows = _query(spark, log, end)
    statements: dict[TableName, list[StructureEvent]] = defaultdict(list)
    for row in rows:
        event = StructureEvent(position_of(row["at"]), row["at"]["row"], Op.DDL, row["ddl"])
        statements[str(row["schema_name"]), str(row["table_name"])].append(event)
    tables = [
        TableEvents(*name, {}, events[0].position, events[-1].position, tuple(events))
        for name, events in sorted(statements.items())
    ]
    return plan_renamings(tables, log.rules, mariadb=log.flavor == "mariadb")


def _query(spark: SparkSession, log: SourceContext, end: Position | None) -> Sequence[Row]:
    bronze, inside = log.lakehouse.bronze, before(end) if end is not None else "true"
    with wrapped(bronze, "reading"):
        return spark.sql(
            f"""SELECT schema_name, table_name, {AT} AS at, ddl FROM {bronze}
            WHERE {of_source(log.source_id)} AND {inside} AND op = 'ddl' AND table_name IS NOT NULL
            AND lower(ddl) LIKE '%rename%'"""
        ).collect()


def _may_rename(row: Mapping[str, Any], end: Position | None) -> bool:
    """The same condition on a row of `landed_structures`."""
    is_before = end is None or position_of(row["at"]) < end
    return is_before and row["op"] == Op.DDL.value and row["table_name"] is not None and "rename" in row["ddl"].lower()
