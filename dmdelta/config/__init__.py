"""The pipeline spec: one YAML file per task, parsed into frozen models, one module per section.

Owns the keys (DM's own names, hyphenated), their defaults and every error in a spec, each with file and line. Must not
know Spark, tables or servers. A stage receives its own section, never the whole spec. The docstring below each field
describes its key; the JSON schema and `docs/spec.md` are generated from these docstrings.
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
