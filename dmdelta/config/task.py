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
from dmdelta.config.live import LiveConfig
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
"""DM's defaults: the names that pt-online-schema-change and gh-ost give their tables."""

_Rule = TypeVar("_Rule", RouteRule, FilterRule, ExpressionFilterRule)


class TaskSpec(Section):
    """One task: its sources, the tables it replicates, how it applies changes and where it writes them."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]*$", max_length=64)]
    """Name of the task: part of its tables and commits. Never change it afterwards."""

    task_mode: Literal["incremental", "full", "all"] = "incremental"
    """`incremental`: replicate the binlog from a position. `all`: on the first start, load the existing tables, then
    replicate the binlog; a source with `meta` starts there without a load. `full`: like `all`, but end once the tables
    are loaded and consistent at one position."""

    sources: Annotated[tuple[SourceConfig, ...], Field(min_length=1)]
    """The servers or archives to read."""

    ignore_checking_items: tuple[str, ...] = ()
    """Checks whose findings are ignored, by the names that `dmdelta check` shows; `all` ignores all of them."""

    block_allow_list: BlockAllowListConfig = BlockAllowListConfig()
    """Which schemas and tables are replicated; all by default."""

    shard_mode: Literal["pessimistic", "optimistic"] | None = None
    """How the schemas of tables that `routes` merge are coordinated. `pessimistic`: silver changes once all tables have
    made a change. `optimistic`: silver immediately takes a schema that fits the rows of all tables. Without it, a table
    whose schema diverges from silver's is stopped."""

    shard_key_clash: Literal["warn", "error", "ignore"] = "warn"
    """How a key that occurs in rows of several shards of a merged table is handled; the table keeps all of these rows.
    `warn`: count and report them. `error`: stop the shard before such a row. `ignore`: do not check."""

    routes: dict[str, RouteRule] = Field(default_factory=dict)
    """Rules by name: which silver table a source table is routed to; by default the table of the same name."""

    filters: dict[str, FilterRule] = Field(default_factory=dict)
    """Rules by name: which row events and DDL statements are replicated; all by default."""

    expression_filter: dict[str, ExpressionFilterRule] = Field(default_factory=dict)
    """Rules by name: which row changes are filtered out by their values; none by default."""

    case_sensitive: bool = False
    """Whether the patterns of `block-allow-list`, `routes` and `filters` match names case-sensitively."""

    online_ddl: bool = True
    """Whether tables of gh-ost and pt-online-schema-change are detected: changes of a shadow table's schema are applied
    to the table that it will replace, trash tables are ignored."""

    shadow_table_rules: Annotated[tuple[NameExpression, ...], Field(min_length=1)] = (SHADOW_TABLES,)
    """Regular expressions for the names of shadow tables, each with one group: the real table's name."""

    trash_table_rules: Annotated[tuple[NameExpression, ...], Field(min_length=1)] = (TRASH_TABLES,)
    """Regular expressions for the names of trash tables, each with one group: the real table's name."""

    syncer: SyncerConfig = SyncerConfig()
    """How changes are applied."""

    snapshot: SnapshotConfig = SnapshotConfig()
    """How tables are loaded before binlog replication starts."""

    lakehouse: LakehouseConfig
    """Where the Delta tables are stored."""

    sink: SinkConfig | None = None
    """An operational database that also receives the changes; none by default."""

    validator: ValidatorConfig = ValidatorConfig()
    """Continuous comparison of changed rows with the source while the task runs; off by default."""

    maintenance: MaintenanceConfig = MaintenanceConfig()
    """How tables are compacted and old files removed."""

    live: LiveConfig | None = None
    """How fresh live reads are while the task runs; without it, as fresh as `syncer.target-freshness` requires."""

    metrics: MetricsConfig | None = None
    """The Prometheus endpoint; none by default."""

    quality: QualityConfig | None = None
    """Data quality checks; without it, `dmdelta quality` runs only the checks that need no configuration."""

    _variables: frozenset[str] = PrivateAttr(frozenset())

    @property
    def variables_of_passwords(self) -> frozenset[str]:
        """The environment variables that passwords were taken from: child processes must not inherit them."""
        return self._variables

    def knowing_variables(self, names: Iterable[str]) -> "TaskSpec":
        """Record the environment variables that the passwords came from and return this spec."""
        self._variables = frozenset(names)
        return self

    def relay_dir(self, source: SourceConfig) -> str:
        """The folder that contains a source's segments: its own, or `relay` in the lakehouse's root."""
        if source.relay.dir is not None:
            return source.relay.dir
        if self.lakehouse.root is None or is_uri(self.lakehouse.root):
            raise ValueError(
                f"source {source.source_id!r} requires relay.dir: the lakehouse is not a folder on this machine"
            )
        return str(Path(self.lakehouse.root) / "relay")

    def is_ignored(self, check: str) -> bool:
        """Whether the findings of a check are ignored."""
        return check in self.ignore_checking_items or "all" in self.ignore_checking_items

    def loads(self, source: SourceConfig) -> bool:
        """Whether a source's first start is a full load: its existing tables, before its log."""
        return self.task_mode != "incremental" and source.meta is None

    def routes_of(self, source: SourceConfig) -> dict[str, RouteRule]:
        """The routes that apply to a source, by name."""
        return _chosen(self.routes, source.route_rules)

    def filters_of(self, source: SourceConfig) -> dict[str, FilterRule]:
        """The filters that apply to a source, by name."""
        return _chosen(self.filters, source.filter_rules)

    def expression_filters_of(self, source: SourceConfig) -> dict[str, ExpressionFilterRule]:
        """The expression filters that apply to a source, by name."""
        return _chosen(self.expression_filter, source.expression_filters)

    @model_validator(mode="after")
    def _rules_exist(self) -> "TaskSpec":
        for source in self.sources:
            for key, names, defined in (
                ("route-rules", source.route_rules, self.routes),
                ("filter-rules", source.filter_rules, self.filters),
                ("expression-filters", source.expression_filters, self.expression_filter),
            ):
                for name in names or ():
                    if name not in defined:
                        known = (
                            f"the spec defines {', '.join(map(repr, defined))}" if defined else "the spec defines none"
                        )
                        raise ValueError(f"source {source.source_id!r}: {key} names {name!r}, but {known}")
        return self

    @model_validator(mode="after")
    def _sink_requires_bronze(self) -> "TaskSpec":
        if self.sink is not None and not self.snapshot.bronze and any(map(self.loads, self.sources)):
            raise ValueError("the sink reads bronze: remove snapshot.bronze: false")
        return self

    @model_validator(mode="after")
    def _quality_fits_the_sink(self) -> "TaskSpec":
        if self.quality is None or self.quality.sink == "all":
            return self
        if self.sink is None:
            raise ValueError("quality.sink: passing requires a sink: add the section sink, or remove quality.sink")
        if self.sink.foreign_key_checks:
            raise ValueError(
                "quality.sink: passing keeps rows out that others refer to: set sink.foreign-key-checks to false"
            )
        return self

    @model_validator(mode="after")
    def _validator_requires_servers(self) -> "TaskSpec":
        archives = [source.source_id for source in self.sources if source.host is None]
        if self.validator.mode != "none" and archives:
            raise ValueError(
                f"source {archives[0]!r} is an archive, which cannot be queried for rows: set validator.mode to none"
            )
        return self

    @model_validator(mode="after")
    def _views_require_a_catalog(self) -> "TaskSpec":
        if self.live is not None and self.live.views and self.lakehouse.catalog is None:
            raise ValueError(
                "live.views requires a catalog for the views: set lakehouse.catalog instead of lakehouse.root, or "
                "remove live.views and query the tables with dmdelta sql"
            )
        return self

    @model_validator(mode="after")
    def _relays_have_folders(self) -> "TaskSpec":
        for source in self.sources:
            self.relay_dir(source)
        return self

    @model_validator(mode="after")
    def _full_load_requires_servers(self) -> "TaskSpec":
        for source in self.sources:
            if self.task_mode != "incremental" and source.host is None:
                raise ValueError(
                    f"source {source.source_id!r} is an archive without tables to load: set task-mode to incremental"
                )
            if self.task_mode == "full" and source.meta is not None:
                raise ValueError(
                    f"source {source.source_id!r} has meta, so that nothing would be loaded: set task-mode to all"
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
