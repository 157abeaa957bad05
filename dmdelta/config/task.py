"""The whole spec of a task."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field, PrivateAttr, field_validator, model_validator

from dmdelta.config.block_allow_list import BlockAllowListConfig
from dmdelta.config.expression_filter import ExpressionFilterRule
from dmdelta.config.filters import FilterRule
from dmdelta.config.lakehouse import LakehouseConfig
from dmdelta.config.maintenance import MaintenanceConfig
from dmdelta.config.metrics import MetricsConfig
from dmdelta.config.patterns import NameExpression
from dmdelta.config.quality import QualityConfig
from dmdelta.config.routes import RouteRule
from dmdelta.config.section import Section, is_uri
from dmdelta.config.sink import SinkConfig
from dmdelta.config.snapshot import SnapshotConfig
from dmdelta.config.source import SourceConfig
from dmdelta.config.syncer import SyncerConfig
from dmdelta.config.validator import ValidatorConfig

SHADOW_TABLES = r"^_(.+)_(?:new|gho)$"
TRASH_TABLES = r"^_(.+)_(?:ghc|del|old)$"
"""DM's own: what pt-online-schema-change and gh-ost call their tables."""

_Rule = TypeVar("_Rule", RouteRule, FilterRule, ExpressionFilterRule)


class TaskSpec(Section):
    """One task: what is read, what takes part, how it is applied and where it lands."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]*$", max_length=64)]
    """Name of the task: part of its tables and commits. Never change it afterwards."""

    task_mode: Literal["incremental", "full", "all"] = "incremental"
    """`incremental`: follow the binlog from a position on. `all`: on its first start, load the tables as they are, then
    follow the binlog; a source with `meta` begins there without a load. `full`: as `all`, but end once the tables are
    loaded and at one position."""

    sources: Annotated[tuple[SourceConfig, ...], Field(min_length=1)]
    """The servers or archives to read."""

    ignore_checking_items: tuple[str, ...] = ()
    """Checks whose findings do not count, by the names that `dmdelta check` shows; `all` for all of them."""

    block_allow_list: BlockAllowListConfig = BlockAllowListConfig()
    """Which schemas and tables take part; all by default."""

    shard_mode: Literal["pessimistic", "optimistic"] | None = None
    """How tables that `routes` merge agree on a structure. `pessimistic`: silver changes once all of them have made a
    change. `optimistic`: silver becomes at once what holds the rows of all of them. Without it, a table whose structure
    changes away from silver's stops."""

    shard_key_clash: Literal["warn", "error", "ignore"] = "warn"
    """What is done about a key that rows of several shards have in a merged table, which keeps them all: count and name
    them, stop the shard ahead of such a row, or do not look."""

    routes: dict[str, RouteRule] = Field(default_factory=dict)
    """Rules by name: which silver table a source table goes to; to one of its own name by default."""

    filters: dict[str, FilterRule] = Field(default_factory=dict)
    """Rules by name: which row events and DDL statements count; all by default."""

    expression_filter: dict[str, ExpressionFilterRule] = Field(default_factory=dict)
    """Rules by name: which row changes are left out by their values; none by default."""

    case_sensitive: bool = False
    """Whether the patterns of `block-allow-list`, `routes` and `filters` tell upper from lower case in names."""

    online_ddl: bool = True
    """Whether the tables of gh-ost and pt-online-schema-change are known as such: a shadow table stands for the table
    whose structure it will replace, a trash table for nothing."""

    shadow_table_rules: Annotated[tuple[NameExpression, ...], Field(min_length=1)] = (SHADOW_TABLES,)
    """Regular expressions of the names of shadow tables, each with one group: the real table's name."""

    trash_table_rules: Annotated[tuple[NameExpression, ...], Field(min_length=1)] = (TRASH_TABLES,)
    """Regular expressions of the names of trash tables, each with one group: the real table's name."""

    syncer: SyncerConfig = SyncerConfig()
    """How changes are applied."""

    snapshot: SnapshotConfig = SnapshotConfig()
    """How tables are loaded before the binlog is followed."""

    lakehouse: LakehouseConfig
    """Where the Delta tables stand."""

    sink: SinkConfig | None = None
    """An operational database that gets the changes, too; none by default."""

    validator: ValidatorConfig = ValidatorConfig()
    """Rows that change, compared with the source while the task runs; none by default."""

    maintenance: MaintenanceConfig = MaintenanceConfig()
    """How tables are kept fast and small."""

    metrics: MetricsConfig | None = None
    """Figures for Prometheus; none by default."""

    quality: QualityConfig | None = None
    """What is expected of the tables; without it, `dmdelta quality` judges by what needs no writing."""

    _variables: frozenset[str] = PrivateAttr(frozenset())

    @property
    def variables_of_passwords(self) -> frozenset[str]:
        """The environment variables that passwords were taken from: no child process needs them."""
        return self._variables

    def knowing_variables(self, names: Iterable[str]) -> "TaskSpec":
        """The same spec, whose passwords came from there."""
        self._variables = frozenset(names)
        return self

    def relay_dir(self, source: SourceConfig) -> str:
        """The folder below which a source's segments are kept: its own, or `relay` in the lakehouse's root."""
        if source.relay.dir is not None:
            return source.relay.dir
        if self.lakehouse.root is None or is_uri(self.lakehouse.root):
            raise ValueError(f"source {source.source_id!r} needs relay.dir: the lakehouse is no folder of this machine")
        return str(Path(self.lakehouse.root) / "relay")

    def is_ignored(self, check: str) -> bool:
        """Whether the findings of a check do not count."""
        return check in self.ignore_checking_items or "all" in self.ignore_checking_items

    def loads(self, source: SourceConfig) -> bool:
        """Whether a source's first start is a full load: its tables as they are, before its log."""
        return self.task_mode != "incremental" and source.meta is None

    def routes_of(self, source: SourceConfig) -> dict[str, RouteRule]:
        """The routes that count for a source, by name."""
        return _chosen(self.routes, source.route_rules)

    def filters_of(self, source: SourceConfig) -> dict[str, FilterRule]:
        """The filters that count for a source, by name."""
        return _chosen(self.filters, source.filter_rules)

    def expression_filters_of(self, source: SourceConfig) -> dict[str, ExpressionFilterRule]:
        """The expression filters that count for a source, by name."""
        return _chosen(self.expression_filter, source.expression_filters)

    @model_validator(mode="after")
    def _rules_are_there(self) -> "TaskSpec":
        for source in self.sources:
            for key, names, there in (
                ("route-rules", source.route_rules, self.routes),
                ("filter-rules", source.filter_rules, self.filters),
                ("expression-filters", source.expression_filters, self.expression_filter),
            ):
                for name in names or ():
                    if name not in there:
                        known = f"there are {', '.join(map(repr, there))}" if there else "the spec has none"
                        raise ValueError(f"source {source.source_id!r}: {key} names {name!r}, but {known}")
        return self

    @model_validator(mode="after")
    def _sink_reads_bronze(self) -> "TaskSpec":
        if self.sink is not None and not self.snapshot.bronze and any(map(self.loads, self.sources)):
            raise ValueError("the sink reads bronze: leave snapshot.bronze: false out")
        return self

    @model_validator(mode="after")
    def _validator_asks_servers(self) -> "TaskSpec":
        archives = [source.source_id for source in self.sources if source.host is None]
        if self.validator.mode != "none" and archives:
            raise ValueError(
                f"source {archives[0]!r} is an archive, which cannot be asked for rows: validator.mode none"
            )
        return self

    @model_validator(mode="after")
    def _relays_have_folders(self) -> "TaskSpec":
        for source in self.sources:
            self.relay_dir(source)
        return self

    @model_validator(mode="after")
    def _servers_are_loaded(self) -> "TaskSpec":
        for source in self.sources:
            if self.task_mode != "incremental" and source.host is None:
                raise ValueError(
                    f"source {source.source_id!r} is an archive, which has no tables to load: task-mode is incremental"
                )
            if self.task_mode == "full" and source.meta is not None:
                raise ValueError(
                    f"source {source.source_id!r} has meta, so that nothing would be loaded: use task-mode all"
                )
        return self

    @field_validator("sources")
    @classmethod
    def _unique_ids(cls, sources: tuple[SourceConfig, ...]) -> tuple[SourceConfig, ...]:
        twice = [name for name, count in Counter(source.source_id for source in sources).items() if count > 1]
        if twice:
            raise ValueError(f"source-id {twice[0]!r} occurs twice")
        return sources


def _chosen(rules: Mapping[str, _Rule], names: tuple[str, ...] | None) -> dict[str, _Rule]:
    return {name: rule for name, rule in rules.items() if names is None or name in names}
