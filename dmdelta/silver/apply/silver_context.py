"""A source as silver sees it: its facts, what its merged tables agree by, and what its rows should fulfil."""

from dataclasses import dataclass, field, replace

from dmdelta.changelog.context import SourceContext
from dmdelta.model.schema import TableName
from dmdelta.sharding import Coordination
from dmdelta.silver.apply.row_checks import RowChecks, no_checks
from dmdelta.silver.table.target import Target


@dataclass(frozen=True, slots=True)
class SilverContext(SourceContext):
    """
    Attributes:
        shards: coordinates the shards of merged tables, of all sources.
        checks: the expectations of a table's rows.
    """

    shards: Coordination = field(default_factory=Coordination)
    checks: RowChecks = no_checks

    def table(self, name: TableName) -> Target:
        """Where a source table's rows go.

        Raises:
            ConfigError: two routes match it.
        """
        return Target(self, name, self.rules.route(*name))

    @property
    def uncoordinated(self) -> "SilverContext":
        """The same without shards that wait and without row checks: for reads, and for replays elsewhere."""
        return replace(self, shards=Coordination(), checks=no_checks)
