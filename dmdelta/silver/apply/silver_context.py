"""The context of a source in silver: the source's facts, the shard coordination and the row expectations."""

from dataclasses import dataclass, field, replace

from dmdelta.changelog.context import SourceContext
from dmdelta.model.schema import TableName
from dmdelta.sharding import Coordination
from dmdelta.silver.apply.row_checks import RowChecks, no_checks
from dmdelta.silver.table.target import Target


@dataclass(frozen=True, slots=True)
class SilverContext(SourceContext):
    """The facts of a source that silver needs.

    Attributes:
        shards: coordinates the shards of merged tables across all sources.
        checks: the expectations of a table's rows. With `no_checks`, its quarantine is neither read nor written.
        keeps_quarantine: the quarantine is read later. Without it, it may keep rows that have left it.
        can_release: rows can be released from the quarantine. Not from that of a replay.
        unquarantined: quarantines, by place and source table, that have no rows and get none during the run.
    """

    shards: Coordination = field(default_factory=Coordination)
    checks: RowChecks = no_checks
    keeps_quarantine: bool = True
    can_release: bool = True
    unquarantined: set[tuple[str, TableName]] = field(default_factory=set, compare=False, repr=False)

    def table(self, name: TableName) -> Target:
        """The silver table of a source table.

        Raises:
            ConfigError: two routes match the source table.
        """
        return Target(self, name, self.rules.route(*name))

    @property
    def uncoordinated(self) -> "SilverContext":
        """A copy without shard coordination and row checks: for reads, and for replays into another table."""
        return replace(self, shards=Coordination(), checks=no_checks)
