"""What a DDL statement does to source tables: structures before and after it, and where each column comes from."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from dmdelta.ddl.fills import Fill
from dmdelta.model.schema import TableName, TableSchema


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a column's values come from in the rows that are there.

    Attributes:
        was: the column's name before the statement, None for a column that is new.
        fill: what a new column holds.
    """

    was: str | None
    fill: Fill = field(default_factory=Fill)


@dataclass(frozen=True, slots=True)
class Altered:
    """A table's structure changes.

    Attributes:
        origins: of the columns of `after`, in their order.
        doubt: why nobody can tell from the statement which rows are there afterwards, '' if they stay.
    """

    before: TableSchema
    after: TableSchema
    origins: tuple[Origin, ...]
    doubt: str = ""

    @property
    def table(self) -> TableName:
        return self.before.name

    @property
    def reused_name(self) -> str | None:
        """A name that stands for another column afterwards: the columns may look as before, so that nobody can tell
        from them whether the change was made. None if there is none.
        """
        before = {column.name.lower() for column in self.before.columns}
        pairs = zip(self.origins, self.after.columns, strict=True)
        taken = (column.name for origin, column in pairs if (origin.was or "").lower() != column.name.lower())
        return next((name for name in taken if name.lower() in before), None)

    def among(self, names: Collection[str]) -> "Altered":
        """The change as a table sees it that has only those of the columns before."""
        pairs = zip(self.after.columns, self.origins, strict=True)
        kept = [(column, origin) for column, origin in pairs if origin.was is None or origin.was in names]
        before = tuple(column for column in self.before.columns if column.name in names)
        return Altered(
            replace(self.before, columns=before),
            replace(self.after, columns=tuple(column for column, _ in kept)),
            tuple(origin for _, origin in kept),
            self.doubt,
        )


@dataclass(frozen=True, slots=True)
class Created:
    """A table begins without rows.

    Attributes:
        schema: None where the statement does not tell the structure.
        charset: the table's default character set, None where nobody told it.
    """

    table: TableName
    schema: TableSchema | None
    charset: str | None = None


@dataclass(frozen=True, slots=True)
class Dropped:
    """A table goes, and its rows."""

    table: TableName


@dataclass(frozen=True, slots=True)
class Truncated:
    """A table's rows go."""

    table: TableName


@dataclass(frozen=True, slots=True)
class Renamed:
    """A table goes on under another name."""

    table: TableName
    to: TableName


def content_after(effects: Iterable["Effect"]) -> dict[TableName, TableName]:
    """Of the names that statements' renames have given, by way of other names or not: which table each has become."""
    content: dict[TableName, TableName] = {}
    for effect in effects:
        if isinstance(effect, Renamed):
            content[effect.to] = content.pop(effect.table, effect.table)
    return content


@dataclass(frozen=True, slots=True)
class Unread:
    """A statement on a table that cannot be understood: why."""

    table: TableName
    reason: str


Effect = Altered | Created | Dropped | Truncated | Renamed | Unread
EMPTYING = (Truncated, Dropped, Created)
"""Behind these a table has none of the rows that it had."""
