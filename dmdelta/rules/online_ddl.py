"""The tables that gh-ost and pt-online-schema-change use, detected by name.

Source: pingcap/tiflow, dm/syncer/online-ddl-tools. A shadow table has the structure that the real table will have and
is finally renamed to it; a trash table is the former real table, or the tool's own bookkeeping.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import TYPE_CHECKING

from dmdelta.model.schema import TableName
from dmdelta.rules.patterns import regular_expression

if TYPE_CHECKING:
    from dmdelta.config.task import TaskSpec


class Role(Enum):
    """The role of a table in an online DDL."""

    REAL = "real"
    SHADOW = "shadow"
    TRASH = "trash"


@dataclass(frozen=True, slots=True)
class Standing:
    """A table's role and the real table it belongs to (itself, if it is real)."""

    role: Role
    real: TableName


@dataclass(frozen=True, slots=True)
class OnlineDdl:
    """Decides for every table. Without patterns every table is a real table.

    Attributes:
        shadow, trash: regular expressions for table names; each has one group, which captures the real table's name.
    """

    shadow: tuple[str, ...] = ()
    trash: tuple[str, ...] = ()

    @classmethod
    def from_config(cls, spec: "TaskSpec") -> "OnlineDdl":
        return cls(spec.shadow_table_rules, spec.trash_table_rules) if spec.online_ddl else cls()

    def standing(self, schema: str, table: str) -> Standing:
        """The role of a table, and its real table."""
        for role, patterns in ((Role.SHADOW, self.shadow), (Role.TRASH, self.trash)):
            for pattern in patterns:
                match = regular_expression(pattern).search(table)
                # If the group is in an unmatched alternative, or empty, it names no table.
                if match is not None and match.group(1):
                    return Standing(role, (schema, match.group(1)))
        return Standing(Role.REAL, (schema, table))

    def role(self, schema: str, table: str) -> Role:
        """The role of a table."""
        return self.standing(schema, table).role

    def wanted(self, allows: Callable[[str, str | None], bool], schema: str, table: str | None) -> bool:
        """Whether statements on a table, or (`table` None) on a schema are replicated; `allows` decides for real
        tables.

        A shadow table is replicated if its real table is, a trash table never.
        """
        if not table:
            return allows(schema, None)
        standing = self.standing(schema, table)
        return standing.role is not Role.TRASH and allows(*standing.real)

    def rows_wanted(self, allows: Callable[[str, str | None], bool], schema: str, table: str) -> bool:
        """Whether the rows of a table are replicated: those of shadow and trash tables never are."""
        return allows(schema, table) and self.role(schema, table) is Role.REAL

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "OnlineDdl":
        fields = json.loads(text)
        return cls(tuple(fields.get("shadow", ())), tuple(fields.get("trash", ())))

    def misfit(self, renames: Sequence[tuple[TableName, TableName]]) -> str:
        """Why the patterns do not fit a statement's renames; '' if they do.

        The last step of a tool renames the real table `t` to a trash table, and its shadow table to `t`. If a pattern
        matches only one of the two tables, or captures another name, `t` would lose its rows or its schema change.

        Args:
            renames: the old and the new name of each table, in the order of the statement.
        """
        for shadow, real in renames:
            standing = self.standing(*shadow)
            if standing.role is not Role.SHADOW or self.role(*real) is not Role.REAL:
                continue
            replaced = f"the shadow table {'.'.join(shadow)} replaces {'.'.join(real)}"
            if standing.real != real:
                return f"{replaced}, but shadow-table-rules captures {'.'.join(standing.real)} as its real table"
            kept = [to for was, to in renames if was == real and self.role(*to) is Role.REAL]
            if kept:
                return f"{replaced}, but {'.'.join(kept[0])} matches no pattern of trash-table-rules"
        return ""
