"""The pipeline spec: one YAML file a task, read into frozen models, one section a file.

Owns the keys (DM's own words, hyphenated), their defaults and every error a spec can hold, each with file and line.
Must not know Spark, tables or servers; a stage is given its own section and never the whole. What a key means is the
docstring under its field; the JSON schema and `docs/spec.md` are made from those.
"""

from dmdelta.config.block_allow_list import BlockAllowListConfig, TablePattern
from dmdelta.config.expression_filter import ExpressionFilterRule
from dmdelta.config.filters import FilterRule
from dmdelta.config.lakehouse import LakehouseConfig
from dmdelta.config.loading import load_spec, load_suite
from dmdelta.config.quality import QualityConfig
from dmdelta.config.routes import ExtractSchema, ExtractSource, ExtractTable, RouteRule
from dmdelta.config.sink import SinkConfig
from dmdelta.config.snapshot import SnapshotConfig
from dmdelta.config.source import MetaConfig, PurgeConfig, RelayConfig, SecurityConfig, SourceConfig
from dmdelta.config.suite import ColumnContract, ExpectationConfig, SuiteConfig
from dmdelta.config.syncer import SyncerConfig
from dmdelta.config.task import TaskSpec
from dmdelta.config.validator import ValidatorConfig

__all__ = [
    "BlockAllowListConfig",
    "ColumnContract",
    "ExpectationConfig",
    "ExpressionFilterRule",
    "ExtractSchema",
    "ExtractSource",
    "ExtractTable",
    "FilterRule",
    "LakehouseConfig",
    "MetaConfig",
    "PurgeConfig",
    "QualityConfig",
    "RelayConfig",
    "RouteRule",
    "SecurityConfig",
    "SinkConfig",
    "SnapshotConfig",
    "SourceConfig",
    "SuiteConfig",
    "SyncerConfig",
    "TablePattern",
    "TaskSpec",
    "ValidatorConfig",
    "load_spec",
    "load_suite",
]
