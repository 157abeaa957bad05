"""How the rows of a source table, under one structure, are written to a table of the target: a pure plan."""

from dataclasses import dataclass

from dmdelta.errors import SinkError
from dmdelta.model.schema import Column, TableName, TableSchema
from dmdelta.model.type_names import BYTES, TEXTUAL, WHOLE
from dmdelta.sink.change import Shape
from dmdelta.sink.statements import quoted
from dmdelta.sink.target import PRIMARY, TargetColumn, TargetTable

_FAMILIES = (
    frozenset(WHOLE),
    frozenset(("decimal",)),
    frozenset(("float", "double")),
    frozenset(("date",)),
    frozenset(("datetime", "timestamp")),
    frozenset(("time",)),
    frozenset(TEXTUAL),
    frozenset(BYTES),
)

TIDB_BITS = 56
"""TiDB's VALUES() of a longer BIT has its eight bytes in reverse order."""


@dataclass(frozen=True, slots=True)
class KeyPlan:
    """A key whose values tell which changes meet.

    Attributes:
        parts: column, its name in the text of the key, and the prefix that counts.
        ends: what stands behind the last part: the table.
    """

    parts: tuple[tuple[Column, str, int | None], ...]
    ends: str


@dataclass(frozen=True, slots=True)
class TablePlan:
    """
    Attributes:
        source: the table at the source.
        schema: its structure, the columns that a route adds included.
        columns: what is written, with the target's names as SQL.
        identity: the columns by which a row is found; empty: by all of them.
        keys: the keys of which changes may meet, the identity's first.
        whole: why changes are only safe in one order for the table as a whole, '' if by key.
        watched: keys hold text whose collation may compare more than ASCII's case: non-ASCII is kept in one order.
        as_text: the JSON columns that are text in the target, as all are in MariaDB.
        cascades: the tables whose changes must stay in one order with this one's, as a name; '' if it is for itself.
        plain: the only key is the identity, whose literal says all.
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
    cascades: str = ""

    @property
    def table_key(self) -> str:
        """The key of the table as a whole."""
        return self.cascades or self.shape.table

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
    cascades: str = "",
    tidb: bool = False,
) -> TablePlan:
    """Plan.

    Args:
        schema: the structure of the rows, named as the target's table.
        foreign_keys: the target checks them.
        cascades: what the tables have in common that change each other's rows so, '' for none.
        tidb: the target is TiDB.

    Raises:
        SinkError: the target lacks a column.
    """
    here = {column.name.lower(): column for column in schema.columns}
    written = [(_column(schema, column, target), column) for column in schema.columns]
    columns = tuple((quoted(there.name), column) for there, column in written if not there.generated)
    identity, found_by = _identity(here, target)
    keys, whole = _keys(here, target, found_by)
    if foreign_keys:
        parents, unknown = _parents(here, target)
        keys, whole = (*keys, *parents), whole or unknown
    whole = "foreign keys change rows by themselves" if cascades else whole
    listed = ", ".join(name for name, _ in columns)
    turned = tidb and any(column.type == "bit" and column.length > TIDB_BITS for _, column in columns)
    assigned = "" if turned else ", ".join(f"{name}=VALUES({name})" for name, _ in columns)
    names = ", ".join(quoted(target.columns[column.name.lower()].name) for column in identity)
    shape = Shape(
        quoted(target.schema, target.table), f"({listed})", assigned, f"({names})" if len(identity) > 1 else names
    )
    watched = any(_is_watched(column, target) for key in keys for column, _, _ in key.parts)
    as_text = frozenset(column.name for there, column in written if column.type == "json" != there.type)
    return TablePlan(source, schema, shape, columns, identity, keys, whole, watched, as_text, cascades)


def _column(schema: TableSchema, column: Column, target: TargetTable) -> TargetColumn:
    found = target.columns.get(column.name.lower())
    if found is None:
        raise SinkError(
            f"the target's table {target.schema}.{target.table} has no column {column.name}",
            hint=f"add it there, as the source's {schema} has it; the sink then goes on where it stopped",
        )
    return found


def _identity(here: dict[str, Column], target: TargetTable) -> tuple[tuple[Column, ...], str]:
    """The columns of the first key that always finds a row, and the key's name."""
    for key in target.keys:
        columns = [here.get((name or "").lower()) for name, prefix in key.parts if prefix is None]
        there = [target.columns[(name or "").lower()] for name, _ in key.parts if name is not None]
        usable = len(columns) == len(key.parts) and None not in columns
        if usable and (key.name == PRIMARY or not any(column.nullable for column in there)):
            return tuple(column for column in columns if column is not None), key.name
    return (), ""


def _keys(here: dict[str, Column], target: TargetTable, found_by: str) -> tuple[tuple[KeyPlan, ...], str]:
    plans: list[KeyPlan] = []
    for key in sorted(target.keys, key=lambda key: key.name != found_by):
        parts: list[tuple[Column, str, int | None]] = []
        for name, prefix in key.parts:
            column = here.get((name or "").lower())
            there = target.columns.get((name or "").lower())
            if name is None or there is None or (column is None and there.generated):
                return tuple(plans), f"its key {key.name} is of values that the log does not have"
            if column is None:
                continue  # the target's own column: the others alone are a wider key
            if not _comparable(column, there):
                return tuple(plans), f"its key column {name} is of another type than the source's"
            parts.append((column, name, prefix))
        if parts:
            plans.append(KeyPlan(tuple(parts), f".{quoted(target.schema, target.table)}"))
    return tuple(plans), ""


def _parents(here: dict[str, Column], target: TargetTable) -> tuple[list[KeyPlan], str]:
    """The keys of the rows that foreign keys point to: as the parent's own key has them."""
    plans: list[KeyPlan] = []
    for parent in target.parents:
        found = [here.get(name.lower()) for name in parent.columns]
        if None in found:
            return plans, f"its foreign key to {parent.table} is of columns that the log does not have"
        pairs = zip(found, parent.referenced, strict=True)
        parts = tuple((column, name, None) for column, name in pairs if column is not None)
        plans.append(KeyPlan(parts, f".{quoted(parent.schema, parent.table)}"))
    return plans, ""


def _comparable(column: Column, there: TargetColumn) -> bool:
    return any(column.type in family and there.type in family for family in _FAMILIES)


def _is_watched(column: Column, target: TargetTable) -> bool:
    there = target.columns.get(column.name.lower())
    return column.type in TEXTUAL and not (there and (there.collation or "").endswith("_bin"))
