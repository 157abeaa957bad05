"""Whose changes go where: the tables of one source, and what their shards and rows have to agree with."""

from dataclasses import dataclass, field

from dmdelta.lakehouse.place import Lakehouse
from dmdelta.model.gtid import Flavor
from dmdelta.model.schema import TableName
from dmdelta.rules import SourceRules
from dmdelta.sharding import Coordination
from dmdelta.silver.checks import RowChecks, no_checks
from dmdelta.silver.target import Target


@dataclass(frozen=True, slots=True)
class SilverSide:
    """Whose changes go where.

    Attributes:
        shards: what the shards of merged tables agree by, of all sources.
        checks: what the rows of its tables should fulfil.
    """

    lakehouse: Lakehouse
    task: str
    source_id: str
    run: str
    flavor: Flavor
    rules: SourceRules
    shards: Coordination = field(default_factory=Coordination)
    checks: RowChecks = no_checks

    def table(self, name: TableName) -> Target:
        """Where a source table's rows go.

        Raises:
            ConfigError: two routes match it.
        """
        return Target(self.lakehouse, self.task, self.source_id, name, self.rules.route(*name))
