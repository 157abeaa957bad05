"""Where a source table's rows go: its silver table, alone or with the rows of other shards."""

from dataclasses import dataclass, replace

from dmdelta.changelog.context import SourceContext
from dmdelta.ddl.tracking.effects import Altered, Origin
from dmdelta.ddl.types.silver_types import SHARD
from dmdelta.model.schema import ConstantColumn, TableName, TableSchema
from dmdelta.model.spark_sql import literal, quote
from dmdelta.rules import Route
from dmdelta.sharding import Shard


def silver_app(task: str, source_id: str, schema: str, table: str) -> str:
    """The Delta transaction application of a source table's commits in silver."""
    return f"dmdelta:{task}:{source_id}:apply:{schema}.{table}"


@dataclass(frozen=True, slots=True)
class Target:
    """The silver table of a source table.

    Attributes:
        source: schema and table at the source.
        route: where it goes, and the columns that silver adds to its rows.
    """

    context: SourceContext
    source: TableName
    route: Route

    @property
    def place(self) -> str:
        """The SQL identifier of the silver table."""
        return self.context.lakehouse.silver(*self.route.name)

    @property
    def app(self) -> str:
        """The Delta transaction application of the source table's commits."""
        return silver_app(self.context.task, self.context.source_id, *self.source)

    @property
    def merged(self) -> bool:
        """Other source tables go to the same silver table."""
        return self.route.merged

    @property
    def shard(self) -> Shard:
        """The source table among all of the task's; a merged table's rows have its text."""
        return Shard(self.context.source_id, *self.source)

    @property
    def own_rows(self) -> str:
        """The source table's rows among those of the silver table, as a condition; '' for all."""
        return f"{SHARD} = {literal(str(self.shard))}" if self.merged else ""

    @property
    def constants(self) -> tuple[ConstantColumn, ...]:
        """The columns that silver adds: what the route extracts, and in a merged table which shard a row is of."""
        found = [ConstantColumn(name, "varchar", value=value) for name, value in self.route.extracted]
        if self.merged:
            found.append(ConstantColumn(SHARD, "varchar", nullable=False, value=str(self.shard)))
        return tuple(found)

    @property
    def added(self) -> list[str]:
        """The values of those columns, as the SELECT list (SQL) of rows that lack them."""
        return [f"{literal(column.value)} AS {quote(column.name)}" for column in self.constants]

    def silver_schema(self, schema: TableSchema) -> TableSchema:
        """A structure of the source table as silver has it: a merged table's key tells shards apart."""
        key = (*schema.primary_key, SHARD) if self.merged and schema.primary_key else schema.primary_key
        return TableSchema(*self.route.name, (*schema.columns, *self.constants), key)

    def seen_change(self, altered: Altered) -> Altered:
        """A change of the source table's structure as silver has it."""
        kept = tuple(Origin(column.name) for column in self.constants)
        return replace(
            altered,
            before=self.silver_schema(altered.before),
            after=self.silver_schema(altered.after),
            origins=(*altered.origins, *kept),
        )


LEFT_OUT = "dmdelta.left-out"
"""The property of a merged table: columns of shards that it goes without, as names separated by commas."""
