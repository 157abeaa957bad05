"""The tables that gh-ost and pt-online-schema-change use, detected by name.

Source: pingcap/tiflow, dm/syncer/online-ddl-tools. A shadow table has the structure that the real table will have and
is finally renamed to it; a trash table is the former real table, or the tool's own bookkeeping.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import TYPE_CHECKING

from dmdelta.errors import ConfigError
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

    def check_renames(self, renames: Sequence[tuple[TableName, TableName]]) -> None:
        """Check a statement's renames for the tools' last step: `t` to `_t_old`, `_t_new` to `t`.

        Raises:
            ConfigError: only one of the two is recognized, so the patterns do not fit the tool.
        """
        if len(renames) != 2 or not (self.shadow or self.trash):
            return
        away, back = ([self.role(*name) for name in pair] for pair in renames)
        kept, came = away == [Role.REAL, Role.TRASH], back == [Role.SHADOW, Role.REAL]
        if kept is not came:
            unknown, key = (renames[1][0], "shadow-table-rules") if kept else (renames[0][1], "trash-table-rules")
            raise ConfigError(
                f"a statement looks like the end of an online DDL, but {'.'.join(unknown)} matches no pattern",
                hint=f"add a regular expression that matches it to {key}",
            )
