"""The silver table that a source table is routed to, alone or merged with other shards."""

from dataclasses import dataclass, replace

from dmdelta.changelog.context import SourceContext
from dmdelta.ddl.tracking.effects import Altered, Origin
from dmdelta.ddl.types.silver_types import SHARD
from dmdelta.model.schema import ConstantColumn, TableName, TableSchema
from dmdelta.model.spark_sql import literal, quote
from dmdelta.rules import Route
from dmdelta.sharding import Shard


def silver_app(task: str, source_id: str, schema: str, table: str) -> str:
    """The transaction application (Delta's txnAppId) of a source table's commits in silver."""
    return f"dmdelta:{task}:{source_id}:apply:{schema}.{table}"


@dataclass(frozen=True, slots=True)
class Target:
    """The silver table of a source table.

    Attributes:
        source: schema and table at the source.
        route: the silver table, and the columns that silver adds to the rows.
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
        """The transaction application (Delta's txnAppId) of the source table's commits."""
        return silver_app(self.context.task, self.context.source_id, *self.source)

    @property
    def merged(self) -> bool:
        """Whether several source tables are routed to the silver table."""
        return self.route.merged

    @property
    def shard(self) -> Shard:
        """The identity of the source table within the task; the rows of a merged table contain its text."""
        return Shard(self.context.source_id, *self.source)

    @property
    def own_rows(self) -> str:
        """The condition (SQL) for the source table's rows in the silver table; '' for all rows."""
        return f"{SHARD} = {literal(str(self.shard))}" if self.merged else ""

    @property
    def constants(self) -> tuple[ConstantColumn, ...]:
        """The columns that silver adds: those that the route extracts, and the shard in a merged table."""
        columns = [ConstantColumn(name, "varchar", value=value) for name, value in self.route.extracted]
        if self.merged:
            columns.append(ConstantColumn(SHARD, "varchar", nullable=False, value=str(self.shard)))
        return tuple(columns)

    @property
    def added(self) -> list[str]:
        """The constant columns as SELECT expressions (SQL)."""
        return [f"{literal(column.value)} AS {quote(column.name)}" for column in self.constants]

    def silver_schema(self, schema: TableSchema) -> TableSchema:
        """A structure of the source table in silver; the key of a merged table includes the shard."""
        key = (*schema.primary_key, SHARD) if self.merged and schema.primary_key else schema.primary_key
        return TableSchema(*self.route.name, (*schema.columns, *self.constants), key)

    def seen_change(self, altered: Altered) -> Altered:
        """A change of the source table's structure in silver."""
        kept = tuple(Origin(column.name) for column in self.constants)
        return replace(
            altered,
            before=self.silver_schema(altered.before),
            after=self.silver_schema(altered.after),
            origins=(*altered.origins, *kept),
        )


LEFT_OUT = "dmdelta.left-out"
"""The property of a merged table that lists the shards' columns which it omits, separated by commas."""
