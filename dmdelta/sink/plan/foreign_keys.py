"""What the target's foreign keys mean for the order of changes: the tables they connect, and what they reference."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from dmdelta.model.schema import TableName
from dmdelta.sink.plan.target_table import Ask

_RULES = """SELECT CONSTRAINT_SCHEMA, TABLE_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME,
    DELETE_RULE IN ('NO ACTION', 'RESTRICT') AND UPDATE_RULE IN ('NO ACTION', 'RESTRICT')
    FROM information_schema.REFERENTIAL_CONSTRAINTS"""
_COLUMNS = """SELECT TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME,
    COLUMN_NAME, REFERENCED_COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE WHERE REFERENCED_TABLE_NAME IS NOT NULL
    ORDER BY TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION"""


@dataclass(frozen=True, slots=True)
class Reference:
    """Columns of a table that a foreign key references, with the names that the foreign key has."""

    schema: str
    table: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Parent:
    """A foreign key of a table: its columns, and what they reference."""

    columns: tuple[str, ...]
    reference: Reference


@dataclass(frozen=True, slots=True)
class Connected:
    """What foreign keys mean for one table.

    Attributes:
        group: name of the group of tables that foreign keys connect; '' for a table without any.
        cascades: foreign keys change rows of the group's tables (CASCADE, SET NULL).
        referenced: what other tables reference of this one; each list of columns once.
        parents: the table's own foreign keys.
    """

    group: str = ""
    cascades: bool = False
    referenced: tuple[Reference, ...] = ()
    parents: tuple[Parent, ...] = ()


ALONE = Connected()
"""No foreign key matters: the table has none, or the target does not check them."""


@dataclass(frozen=True, slots=True)
class ForeignKeys:
    """
    Attributes:
        connected: by table, in lower case: a foreign key may name a table in another case than the table itself.
    """

    connected: Mapping[TableName, Connected]

    def of(self, table: TableName) -> Connected:
        return self.connected.get(_lower(table), ALONE)


def read_foreign_keys(ask: Ask) -> ForeignKeys:
    """All foreign keys of the target."""
    groups: dict[TableName, set[TableName]] = {}
    changed: set[TableName] = set()
    for schema, table, other_schema, other_table, restricts in ask(_RULES):
        child, parent = _lower((schema, table)), _lower((other_schema, other_table))
        joined = groups.get(child, {child}) | groups.get(parent, {parent})
        groups.update(dict.fromkeys(joined, joined))
        changed |= set() if restricts else {child}
    parents = _parents(ask)
    referenced: dict[TableName, dict[Reference, None]] = defaultdict(dict)
    for reference in (one.reference for own in parents.values() for one in own):
        referenced[_lower((reference.schema, reference.table))][reference] = None
    return ForeignKeys(
        {
            name: Connected(
                f"foreign keys of {'.'.join(min(group))}",
                bool(group & changed),
                tuple(referenced.get(name, ())),
                tuple(parents.get(name, ())),
            )
            for name, group in groups.items()
        }
    )


def _parents(ask: Ask) -> dict[TableName, list[Parent]]:
    """The foreign keys of each table."""
    columns: dict[tuple[str, ...], list[tuple[str, str]]] = defaultdict(list)
    for *key, column, referenced in ask(_COLUMNS):
        columns[tuple(key)].append((column, referenced))
    found: dict[TableName, list[Parent]] = defaultdict(list)
    for (schema, table, _, other_schema, other_table), pairs in columns.items():
        own, others = (tuple(names) for names in zip(*pairs, strict=True))
        found[_lower((schema, table))].append(Parent(own, Reference(other_schema, other_table, others)))
    return found


def _lower(name: TableName) -> TableName:
    return name[0].lower(), name[1].lower()
