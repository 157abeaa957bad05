"""DM's block and allow list.

Schema first: with `do-dbs`, only a match there goes on; else a match in `ignore-dbs` is out. Then the table: a match in
`do-tables` is in, and with `do-tables` nothing else is; else a match in `ignore-tables` is out. Source: DM's
documentation, "Block and allow table lists". Names are compared without case, as DM does by default and as Delta does.
"""

import fnmatch
import json
import re
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from dmdelta.model.schema import SYSTEM_SCHEMAS

if TYPE_CHECKING:  # executors decide without the spec, and need not load pydantic
    from dmdelta.config.block_allow_list import BlockAllowListConfig

TablePatterns = tuple[tuple[str, str], ...]
"""Pairs of a schema's and a table's pattern."""


@dataclass(frozen=True)
class BlockAllowList:
    """The decision for every table. A pattern is a name with `*`, `?`, `[a-z]`, or after `~` a regular expression."""

    do_dbs: tuple[str, ...] = ()
    ignore_dbs: tuple[str, ...] = ()
    do_tables: TablePatterns = ()
    ignore_tables: TablePatterns = ()
    _decided: dict[tuple[str, str | None], bool] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def from_config(cls, config: "BlockAllowListConfig") -> "BlockAllowList":
        return cls(
            config.do_dbs,
            config.ignore_dbs,
            tuple((pattern.db_name, pattern.tbl_name) for pattern in config.do_tables),
            tuple((pattern.db_name, pattern.tbl_name) for pattern in config.ignore_tables),
        )

    def wanted(self, schema: str, table: str | None) -> bool:
        """Whether a table takes part; with `table` None, whether a statement on the schema itself does."""
        decided = self._decided.get((schema, table))
        if decided is None:
            decided = self._wants_schema(schema) and (not table or self._wants_table(schema, table))
            self._decided[schema, table] = decided
        return decided

    def to_json(self) -> str:
        fields = asdict(self)
        del fields["_decided"]
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "BlockAllowList":
        fields = json.loads(text)
        return cls(
            tuple(fields["do_dbs"]),
            tuple(fields["ignore_dbs"]),
            tuple((schema, table) for schema, table in fields["do_tables"]),
            tuple((schema, table) for schema, table in fields["ignore_tables"]),
        )

    def _wants_schema(self, schema: str) -> bool:
        if schema.lower() in SYSTEM_SCHEMAS:
            return False
        if self.do_dbs:
            return any(_matches(pattern, schema) for pattern in self.do_dbs)
        return not any(_matches(pattern, schema) for pattern in self.ignore_dbs)

    def _wants_table(self, schema: str, table: str) -> bool:
        if self.do_tables:
            return _matches_any(self.do_tables, schema, table)
        return not _matches_any(self.ignore_tables, schema, table)


def _matches_any(patterns: TablePatterns, schema: str, table: str) -> bool:
    return any(_matches(of_schema, schema) and _matches(of_table, table) for of_schema, of_table in patterns)


def _matches(pattern: str, name: str) -> bool:
    return _compiled(pattern).search(name) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    text = pattern[1:] if pattern.startswith("~") else r"\A" + fnmatch.translate(pattern)
    return re.compile(text, re.IGNORECASE)
