"""How the rows of a source table, under one structure, are written to a table of the target: a pure plan."""

from dataclasses import dataclass

from dmdelta.errors import SinkError
from dmdelta.model.mysql_sql import quoted_name
from dmdelta.model.schema import Column, ConstantColumn, TableName, TableSchema
from dmdelta.model.type_names import BYTES, TEXTUAL, WHOLE
from dmdelta.sink.change import Shape
from dmdelta.sink.plan.foreign_keys import ALONE, Connected
from dmdelta.sink.plan.target_table import PRIMARY, TargetColumn, TargetTable

FAMILIES = (
    frozenset(WHOLE),
    frozenset(("decimal",)),
    frozenset(("float", "double")),
    frozenset(("date",)),
    frozenset(("datetime", "timestamp")),
    frozenset(("time",)),
    frozenset(TEXTUAL),
    frozenset(BYTES),
)
"""Types of the source and the target whose values compare alike."""

TIDB_BITS = 56
"""TiDB's VALUES() returns the eight bytes of a longer BIT in reverse order."""


@dataclass(frozen=True, slots=True)
class KeyPlan:
    """A key by whose values causality relates changes.

    Attributes:
        parts: column, its name in the text of the key, and the indexed prefix.
        ends: the suffix after the last part: the table.
    """

    parts: tuple[tuple[Column, str, int | None], ...]
    ends: str


@dataclass(frozen=True, slots=True)
class TablePlan:
    """
    Attributes:
        source: the table at the source.
        schema: its structure, including the columns that a route adds.
        columns: what is written, with the target's names as SQL.
        identity: the columns that identify a row; empty: all columns.
        keys: the keys by which causality relates changes, the identity's first.
        whole: why the changes of the table must stay in one order; '' if they are ordered by key.
        watched: keys contain text whose collation may ignore more than ASCII case: non-ASCII text stays in one order.
        as_text: the JSON columns that are text in the target, as all are in MariaDB.
        group: name of the group of tables that foreign keys connect with this one; '' for none, or if unchecked.
        plain: the only key is the identity, and its literal is unambiguous.
    """

    source: TableName
    schema: TableSchema
    shape: Shape
    columns: tuple[tuple[str, Column], ...]
    identity: tuple[Column, ...]
    keys: tuple[KeyPlan, ...]
    whole: str = ""
    watched: bool = False
    as_text: frozenset[str] = frozenset()
    group: str = ""

    @property
    def table_key(self) -> str:
        """The key of the table as a whole: with foreign keys, that of all tables that they connect with it."""
        return self.group or self.shape.table

    @property
    def key_names(self) -> frozenset[str]:
        """The columns of all keys, except those that a route adds."""
        parts = [column for key in self.keys for column, _, _ in key.parts]
        return frozenset(column.name for column in parts if not isinstance(column, ConstantColumn))

    @property
    def plain(self) -> bool:
        if len(self.keys) != 1 or len(self.identity) != 1:
            return False
        column, _, prefix = self.keys[0].parts[0]
        return column.type not in (*TEXTUAL, *BYTES, "float", "double") and prefix is None


def plan_table(
    source: TableName,
    schema: TableSchema,
    target: TargetTable,
    *,
    foreign_keys: bool = False,
    connected: Connected = ALONE,
    tidb: bool = False,
) -> TablePlan:
    """Plan how rows are written.

    Args:
        schema: the structure of the rows, with the name of the target's table.
        foreign_keys: the target checks them.
        connected: the tables that these connect with it.
        tidb: the target is TiDB.

    Raises:
        SinkError: the target lacks a column.
    """
    here = {column.name.lower(): column for column in schema.columns}
    written = [(_column(schema, column, target), column) for column in schema.columns]
    columns = tuple((quoted_name(in_target.name), column) for in_target, column in written if not in_target.generated)
    identity, found_by = _identity(here, target)
    keys, whole = _keys(here, target, found_by)
    if foreign_keys:
        others, unknown = _related(here, connected)
        keys, whole = (*keys, *(key for key in others if key not in keys)), whole or unknown
    whole = "foreign keys cascade" if connected.cascades else whole
    listed = ", ".join(name for name, _ in columns)
    reversed_bits = tidb and any(column.type == "bit" and column.length > TIDB_BITS for _, column in columns)
    assigned = "" if reversed_bits else ", ".join(f"{name}=VALUES({name})" for name, _ in columns)
    names = ", ".join(quoted_name(target.columns[column.name.lower()].name) for column in identity)
    shape = Shape(
        quoted_name(target.schema, target.table), f"({listed})", assigned, f"({names})" if len(identity) > 1 else names
    )
    watched = any(_is_watched(column, target) for key in keys for column, _, _ in key.parts)
    as_text = frozenset(column.name for in_target, column in written if column.type == "json" != in_target.type)
    return TablePlan(
        source=source,
        schema=schema,
        shape=shape,
        columns=columns,
        identity=identity,
        keys=keys,
        whole=whole,
        watched=watched,
        as_text=as_text,
        group=connected.group,
    )


def _column(schema: TableSchema, column: Column, target: TargetTable) -> TargetColumn:
    in_target = target.columns.get(column.name.lower())
    if in_target is None:
        raise SinkError(
            f"the target's table {target.schema}.{target.table} has no column {column.name}",
            hint=f"add it with the definition that the source's {schema} has; the sink then resumes where it stopped",
        )
    return in_target


def _identity(here: dict[str, Column], target: TargetTable) -> tuple[tuple[Column, ...], str]:
    """The columns of the first key that always identifies a row, and the key's name."""
    for key in target.keys:
        columns = [here.get((name or "").lower()) for name, prefix in key.parts if prefix is None]
        in_target = [target.columns[(name or "").lower()] for name, _ in key.parts if name is not None]
        usable = len(columns) == len(key.parts) and None not in columns
        if usable and (key.name == PRIMARY or not any(column.nullable for column in in_target)):
            return tuple(column for column in columns if column is not None), key.name
    return (), ""


def _keys(here: dict[str, Column], target: TargetTable, found_by: str) -> tuple[tuple[KeyPlan, ...], str]:
    plans: list[KeyPlan] = []
    for key in sorted(target.keys, key=lambda key: key.name != found_by):
        parts: list[tuple[Column, str, int | None]] = []
        for name, prefix in key.parts:
            column = here.get((name or "").lower())
            in_target = target.columns.get((name or "").lower())
            if name is None or in_target is None or (column is None and in_target.generated):
                return tuple(plans), f"its key {key.name} has values that are not in the log"
            if column is None:
                continue  # the target's own column: the other columns form a wider key
            if not _comparable(column, in_target):
                return tuple(plans), f"its key column {name} has another type than the source's"
            parts.append((column, name, prefix))
        if parts:
            plans.append(KeyPlan(tuple(parts), f".{quoted_name(target.schema, target.table)}"))
    return tuple(plans), ""


def _related(here: dict[str, Column], connected: Connected) -> tuple[list[KeyPlan], str]:
    """The keys that rows of different tables have in common: what foreign keys reference of this table, and of its
    parents. It may be a part of a key, or no unique key: an additional key then relates a parent to its children.
    """
    related = [(one.columns, one) for one in connected.referenced]
    related += [(one.columns, one.reference) for one in connected.parents]
    plans: list[KeyPlan] = []
    for own, reference in related:
        columns = [here.get(name.lower()) for name in own]
        if None in columns:
            return plans, f"a foreign key to {reference.table} has columns that are not in the log"
        pairs = zip(columns, reference.columns, strict=True)
        parts = tuple((column, name, None) for column, name in pairs if column is not None)
        plans.append(KeyPlan(parts, f".{quoted_name(reference.schema, reference.table)}"))
    return plans, ""


def _comparable(column: Column, in_target: TargetColumn) -> bool:
    return any(column.type in family and in_target.type in family for family in FAMILIES)


def _is_watched(column: Column, target: TargetTable) -> bool:
    in_target = target.columns.get(column.name.lower())
    return column.type in TEXTUAL and not (in_target and (in_target.collation or "").endswith("_bin"))
