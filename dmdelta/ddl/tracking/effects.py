"""The effect of a DDL statement on source tables: structures before and after, and the origin of each column."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from dmdelta.ddl.types.added_values import Fill
from dmdelta.model.schema import TableName, TableSchema


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a column's values in existing rows.

    Attributes:
        was: the column's name before the statement, None for a new column.
        fill: the value of a new column.
    """

    was: str | None
    fill: Fill = field(default_factory=Fill)


@dataclass(frozen=True, slots=True)
class Altered:
    """A change of a table's structure.

    Attributes:
        origins: of the columns of `after`, in order.
        doubt: why the statement does not determine which rows remain, or their values; '' if it does.
        unique_in_copy: an online DDL adds a unique index: its tool leaves out rows that violate the index, and the log
            has no deletion of them.
    """

    before: TableSchema
    after: TableSchema
    origins: tuple[Origin, ...]
    doubt: str = ""
    unique_in_copy: bool = False

    @property
    def table(self) -> TableName:
        return self.before.name

    @property
    def reused_name(self) -> str | None:
        """A column name that refers to another column after the change, None if there is none. The columns may then
        look unchanged, so that they do not show whether the change was made.
        """
        before = {column.name.lower() for column in self.before.columns}
        pairs = zip(self.origins, self.after.columns, strict=True)
        taken = (column.name for origin, column in pairs if (origin.was or "").lower() != column.name.lower())
        return next((name for name in taken if name.lower() in before), None)

    def among(self, names: Collection[str]) -> "Altered":
        """The change for a table that has only some of the columns before it."""
        pairs = zip(self.after.columns, self.origins, strict=True)
        kept = [(column, origin) for column, origin in pairs if origin.was is None or origin.was in names]
        before = tuple(column for column in self.before.columns if column.name in names)
        return replace(
            self,
            before=replace(self.before, columns=before),
            after=replace(self.after, columns=tuple(column for column, _ in kept)),
            origins=tuple(origin for _, origin in kept),
        )


@dataclass(frozen=True, slots=True)
class Created:
    """A table is created without rows.

    Attributes:
        schema: None if the statement does not describe the structure.
        charset: the table's default character set, None if unknown.
    """

    table: TableName
    schema: TableSchema | None
    charset: str | None = None


@dataclass(frozen=True, slots=True)
class Dropped:
    """A table is dropped with its rows."""

    table: TableName


@dataclass(frozen=True, slots=True)
class Truncated:
    """All rows of a table are deleted."""

    table: TableName


@dataclass(frozen=True, slots=True)
class Renamed:
    """A table is renamed."""

    table: TableName
    to: TableName


def content_after(effects: Iterable["Effect"]) -> dict[TableName, TableName]:
    """For each name given by the statements' renames, directly or in several steps: the original name of the table."""
    content: dict[TableName, TableName] = {}
    for effect in effects:
        if isinstance(effect, Renamed):
            content[effect.to] = content.pop(effect.table, effect.table)
    return content


@dataclass(frozen=True, slots=True)
class Unread:
    """A statement on a table that cannot be parsed, and the reason.

    Attributes:
        unsupported: silver cannot have the table, whatever its structure.
    """

    table: TableName
    reason: str
    unsupported: bool = False


@dataclass(frozen=True, slots=True)
class Moved:
    """Rows that the log does not contain are moved into or out of a table, and the reason why they are unknown.

    After it the rows are also unknown if there were none. The structure stays.
    """

    table: TableName
    reason: str


Effect = Altered | Created | Dropped | Truncated | Renamed | Unread | Moved
EMPTYING = (Truncated, Dropped, Created)
"""After these effects a table has none of its previous rows."""


def empties(effects: Iterable[Effect]) -> bool:
    """Whether one of the effects leaves a table without its former rows."""
    return any(isinstance(effect, EMPTYING) for effect in effects)
