"""The tables that gh-ost and pt-online-schema-change work with, told by their names.

Source: pingcap/tiflow, dm/syncer/online-ddl-tools. A shadow table has the structure that the real one will have, and
takes its name in the end; a trash table is the old real one, or the tool's own notes.
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
    """What a table is for."""

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
    """The decision for every table. Without patterns every table is real.

    Attributes:
        shadow, trash: regular expressions of names; the one group of each holds the real table's name.
    """

    shadow: tuple[str, ...] = ()
    trash: tuple[str, ...] = ()

    @classmethod
    def from_config(cls, spec: "TaskSpec") -> "OnlineDdl":
        return cls(spec.shadow_table_rules, spec.trash_table_rules) if spec.online_ddl else cls()

    def standing(self, schema: str, table: str) -> Standing:
        """What a table is for, and for which real table."""
        for role, patterns in ((Role.SHADOW, self.shadow), (Role.TRASH, self.trash)):
            for pattern in patterns:
                found = regular_expression(pattern).search(table)
                # An alternative without the group, or an empty one, names no table.
                if found is not None and found.group(1):
                    return Standing(role, (schema, found.group(1)))
        return Standing(Role.REAL, (schema, table))

    def role(self, schema: str, table: str) -> Role:
        """What a table is for."""
        return self.standing(schema, table).role

    def wanted(self, allows: Callable[[str, str | None], bool], schema: str, table: str | None) -> bool:
        """Whether a table, or (`table` None) a schema takes part in the log, given what `allows` real tables to.

        A shadow table does if its real table does, a trash table never.
        """
        if not table:
            return allows(schema, None)
        standing = self.standing(schema, table)
        return standing.role is not Role.TRASH and allows(*standing.real)

    def rows_wanted(self, allows: Callable[[str, str | None], bool], schema: str, table: str) -> bool:
        """Whether the rows of a table take part: those of shadow and trash tables never do."""
        return allows(schema, table) and self.role(schema, table) is Role.REAL

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "OnlineDdl":
        fields = json.loads(text)
        return cls(tuple(fields.get("shadow", ())), tuple(fields.get("trash", ())))

    def check_renames(self, renames: Sequence[tuple[TableName, TableName]]) -> None:
        """Look at a statement's renames for the tools' last step: `t` to `_t_old`, `_t_new` to `t`.

        Raises:
            ConfigError: only one of the two is known, so that the patterns are not the tool's.
        """
        if len(renames) != 2 or not (self.shadow or self.trash):
            return
        away, back = ([self.role(*name) for name in pair] for pair in renames)
        kept, came = away == [Role.REAL, Role.TRASH], back == [Role.SHADOW, Role.REAL]
        if kept is not came:
            unknown, key = (renames[1][0], "shadow-table-rules") if kept else (renames[0][1], "trash-table-rules")
            raise ConfigError(
                f"a statement looks like the end of an online DDL, but {'.'.join(unknown)} is no table of the tool",
                hint=f"add a regular expression for it to {key}",
            )
