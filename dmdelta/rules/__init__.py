"""Which of a source's tables and events are replicated, and where to: pure decisions, derived from the spec.

Owns DM's matching rules: `block-allow-list`, `routes`, `filters`, the tables of online DDL, and the translation of
`expression-filter` to Spark SQL. The decisions are sent to Spark's executors, as JSON or pickled, so that filtered rows
are never decoded. Must not know tables, Spark or files.
"""

from dmdelta.rules.block_allow_list import BlockAllowList
from dmdelta.rules.filters import Action, EventFilter
from dmdelta.rules.online_ddl import OnlineDdl, Role, Standing
from dmdelta.rules.routes import Route, Routes
from dmdelta.rules.source_rules import NO_RULES, SourceRules

__all__ = [
    "NO_RULES",
    "Action",
    "BlockAllowList",
    "EventFilter",
    "OnlineDdl",
    "Role",
    "Route",
    "Routes",
    "SourceRules",
    "Standing",
]
