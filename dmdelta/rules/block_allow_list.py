"""DM's block and allow list.

Schema first: with `do-dbs`, only matching schemas are kept; otherwise schemas that match `ignore-dbs` are excluded.
Then the table: with `do-tables`, only matching tables are kept; otherwise tables that match `ignore-tables` are
excluded. Source: DM's documentation, "Block and allow table lists". Names are compared case-insensitively unless the
spec sets `case-sensitive`.
"""

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from dmdelta.model.schema import SYSTEM_SCHEMAS
from dmdelta.rules.patterns import is_exact, matches, matches_table

if TYPE_CHECKING:  # executors decide without the spec, and need not load pydantic
    from dmdelta.config.block_allow_list import BlockAllowListConfig

TablePatterns = tuple[tuple[str, str], ...]
"""Pairs of a schema pattern and a table pattern."""


@dataclass(frozen=True)
class BlockAllowList:
    """Decides for every table. A pattern is a name with `*`, `?`, `[a-z]`, or a regular expression after `~`."""

    do_dbs: tuple[str, ...] = ()
    ignore_dbs: tuple[str, ...] = ()
    do_tables: TablePatterns = ()
    ignore_tables: TablePatterns = ()
    case_sensitive: bool = False
    _decided: dict[tuple[str, str | None], bool] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def from_config(cls, config: "BlockAllowListConfig", *, case_sensitive: bool = False) -> "BlockAllowList":
        return cls(
            config.do_dbs,
            config.ignore_dbs,
            tuple((pattern.db_name, pattern.tbl_name) for pattern in config.do_tables),
            tuple((pattern.db_name, pattern.tbl_name) for pattern in config.ignore_tables),
            case_sensitive,
        )

    def wanted(self, schema: str, table: str | None) -> bool:
        """Whether a table is replicated; if `table` is None, whether statements on the schema itself are."""
        decided = self._decided.get((schema, table))
        if decided is None:
            decided = self._allows_schema(schema) and (not table or self._allows_table(schema, table))
            self._decided[schema, table] = decided
        return decided

    @property
    def places(self) -> TablePatterns:
        """The patterns of the selected schemas and tables, with the names of schemas where `do-dbs` has them."""
        if not self.do_tables:
            return tuple((schema, "*") for schema in self.do_dbs or ("*",))
        exact = [schema for schema in self.do_dbs if is_exact(schema)]
        places: list[tuple[str, str]] = []
        for schema, table in self.do_tables:
            if is_exact(schema):
                places += [(schema, table)] if self._allows_schema(schema) else []
            elif self.do_dbs and len(exact) == len(self.do_dbs):
                places += [(name, table) for name in exact if self._fits(schema, name)]
            else:
                places.append((schema, table))
        return tuple(dict.fromkeys(places))

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
            fields["case_sensitive"],
        )

    def _allows_schema(self, schema: str) -> bool:
        if schema.lower() in SYSTEM_SCHEMAS:
            return False
        if self.do_dbs:
            return any(self._fits(pattern, schema) for pattern in self.do_dbs)
        return not any(self._fits(pattern, schema) for pattern in self.ignore_dbs)

    def _allows_table(self, schema: str, table: str) -> bool:
        if self.do_tables:
            return self._fits_any(self.do_tables, schema, table)
        return not self._fits_any(self.ignore_tables, schema, table)

    def _fits_any(self, patterns: TablePatterns, schema: str, table: str) -> bool:
        name = (schema, table)
        return any(matches_table(pattern, name, case_sensitive=self.case_sensitive) for pattern in patterns)

    def _fits(self, pattern: str, name: str) -> bool:
        return matches(pattern, name, case_sensitive=self.case_sensitive)
