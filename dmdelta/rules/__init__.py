"""What of a source takes part, and where it goes: pure decisions, made from the spec.

Owns DM's matching rules: `block-allow-list`, `routes`, `filters`, the tables of online DDL, and what an expression of
`expression-filter` is in Spark's SQL. The decisions travel to Spark's executors, as JSON or pickled, so that rows that
nobody wants are never decoded. Must not know tables, Spark or files.
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
