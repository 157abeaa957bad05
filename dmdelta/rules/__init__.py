"""Which schemas and tables take part: pure decisions, made from the spec's `block-allow-list`.

Owns DM's matching rules. The decision travels to Spark's executors, as JSON or pickled, so that rows nobody wants are
never decoded. Must not know tables, Spark or files.
"""

from dmdelta.rules.block_allow_list import BlockAllowList

__all__ = ["BlockAllowList"]
