"""Under which names a table had its rows: RENAMEs in the past of a table, from the statements that bronze holds.

`RENAME TABLE log TO audit` leaves what `audit` holds in the past of `log`; a swap by way of a third name crosses two
pasts. Statements that the rules leave out, and the cut-over of an online DDL, change no silver table
and do not count.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from dmdelta.changelog.context import SourceContext
from dmdelta.changelog.ranges import before, of_source
from dmdelta.changelog.xa import AT, position_of
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.silver.apply.renames import Renaming, plan_renamings
from dmdelta.silver.schema.range_profile import StructureEvent, TableEvents

NewestRead = Callable[[TableName, Position], Position | None]
"""Where the log of a table continues behind its newest ad-hoc snapshot before a position; None without a snapshot."""


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A name under which a table had its rows.

    Attributes:
        end: behind the last event under this name.
        renaming: the statement that gave the name its rows, or took away the rows that it had; None: the name has its
            rows from its beginning.
    """

    name: TableName
    end: Position
    renaming: Renaming | None = None

    @property
    def begin(self) -> Position | None:
        """Where the name got its rows; None: at its beginning."""
        return self.renaming.at if self.renaming is not None else None


def plan_lineage(
    renamings: Sequence[Renaming], name: TableName, end: Position, newest_read: NewestRead
) -> tuple[Ancestor, ...]:
    """The names of the table that is called `name` at `end`, oldest first; the last one is `name`.

    An ad-hoc snapshot begins a table again: RENAMEs before it are not part of the table's past.

    Args:
        renamings: of the source, in the log's order.
    """
    found: list[Ancestor] = []
    while True:
        renaming = next((one for one in reversed(renamings) if one.at < end and name in one.sources), None)
        read = newest_read(name, end) if renaming is not None else None
        if renaming is not None and read is not None and renaming.at < read:
            renaming = None
        found.append(Ancestor(name, end, renaming))
        source = renaming.sources[name] if renaming is not None else None
        if renaming is None or source is None:
            return tuple(reversed(found))
        name, end = source, renaming.at


def renamings_before(spark: SparkSession, log: SourceContext, end: Position | None) -> list[Renaming]:
    """The statements before `end` (None: all) that rename tables of a source, in the log's order.

    Raises:
        LakehouseError: bronze cannot be read.
    """
    bronze = log.lakehouse.bronze
    inside = before(end) if end is not None else "true"
    with wrapped(bronze, "reading"):
        rows = spark.sql(
            f"""SELECT schema_name, table_name, {AT} AS at, ddl FROM {bronze}
            WHERE {of_source(log.source_id)} AND {inside} AND op = 'ddl' AND table_name IS NOT NULL
            AND lower(ddl) LIKE '%rename%'"""
        ).collect()
    statements: dict[TableName, list[StructureEvent]] = defaultdict(list)
    for row in rows:
        event = StructureEvent(position_of(row["at"]), row["at"]["row"], Op.DDL, row["ddl"])
        statements[str(row["schema_name"]), str(row["table_name"])].append(event)
    tables = [
        TableEvents(*name, {}, events[0].position, events[-1].position, tuple(events))
        for name, events in sorted(statements.items())
    ]
    return plan_renamings(tables, log.rules, mariadb=log.flavor == "mariadb")
