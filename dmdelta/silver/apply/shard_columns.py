"""Shard merge: the effect of a statement on one shard on the columns of the merged table, as a pure plan.

Changes of rows apply to the shard's own rows. Changes of columns apply once, for the first shard that makes them. A
column that other shards have remains.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dmdelta.ddl.tracking.effects import Altered
from dmdelta.ddl.types.conversion import Conversion, ConversionKind, plan_conversion
from dmdelta.ddl.types.outcome import widens
from dmdelta.ddl.types.silver_types import silver_type
from dmdelta.errors import SchemaError
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.sharding import Columns, held_type, holds, name_among
from dmdelta.silver.schema.evolution import older_than
from dmdelta.silver.table.target import Target


@dataclass(frozen=True, slots=True)
class ShardChange:
    """A change of a shard's structure, and the state that it applies to.

    Attributes:
        existing: the merged table's columns.
        others: the other shards' structures; None for an unknown one.
    """

    target: Target
    altered: Altered
    existing: Columns
    others: Sequence[TableSchema | None]
    at: Position
    mariadb: bool = False

    def others_have(self, column: str) -> bool:
        """Whether rows of another shard may have a value in it."""
        return bool(self.types_of_others(column))

    def types_of_others(self, column: str) -> set[str | None]:
        """The types of a column in the other shards; contains None if a shard's structure is unknown."""
        unknown: set[str | None] = {None} if None in self.others else set()
        return unknown | {held_type(own) for own in self.columns_of_others(column)}

    def columns_of_others(self, column: str) -> list[Column]:
        """A column's definitions in the other shards whose structure is known."""
        known = [own for other in self.others if other is not None for own in other.columns]
        return [own for own in known if own.name.lower() == column.lower()]


@dataclass(slots=True)
class ColumnPlan:
    """The column changes, while they are planned.

    Attributes:
        types: the merged table's columns and types after the changes so far.
        steps: ALTER TABLE clauses, in order.
        values: the new values of the shard's own rows, as SQL expressions by column.
        rewritten: columns that are rewritten in every row, by name: the SQL expression and the type.
        gone: columns that no shard has any more.
        unknown: why the values of existing rows cannot be determined; '' if they can.
    """

    types: dict[str, str]
    steps: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    rewritten: dict[str, tuple[str, str]] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    unknown: str = ""

    def name(self, column: str) -> str | None:
        return name_among(self.types, column)

    def doubt(self, reason: str | None) -> None:
        self.unknown = self.unknown or reason or ""


def plan_columns(change: ShardChange) -> ColumnPlan:
    """Plan the column changes of a shard's statement.

    Raises:
        SchemaError: the statement reuses a column name, or a type does not fit.
    """
    reused = change.altered.reused_name
    if reused is not None:
        raise SchemaError(f"the statement reuses the name {reused} for another column of the shard")
    plan = ColumnPlan(dict(change.existing.types), unknown=change.altered.doubt)
    kept = {origin.was for origin in change.altered.origins}
    for column in change.altered.before.columns:
        if column.name not in kept and (name := plan.name(column.name)) is not None:
            _drop(plan, change, name)
    before = {column.name: column for column in change.altered.before.columns}
    pairs = list(zip(change.altered.origins, change.altered.after.columns, strict=True))
    for index, (origin, column) in enumerate(pairs):
        if column.name.lower() in change.existing.left_out:
            continue
        previous = pairs[index - 1][1].name if index else None
        if origin.was is None:
            _add(plan, change, column, previous)
            plan.doubt(origin.fill.unknown)
            if origin.fill.sql:
                _fill(plan, change, column.name, origin.fill.sql)
        else:
            _change(plan, change, before[origin.was], column, previous)
    return plan


def _drop(plan: ColumnPlan, change: ShardChange, name: str) -> None:
    """Drop a column that no other shard has; otherwise set it to NULL in the shard's rows."""
    if change.others_have(name):
        plan.values[name] = "NULL"
    else:
        plan.gone.append(name)
        del plan.types[name]


def _add(plan: ColumnPlan, change: ShardChange, column: Column, previous: str | None) -> None:
    """Add a column of the shard. Converts an existing column to its type if that holds the values of all shards."""
    kind, name = held_type(column), plan.name(column.name)
    present = plan.types[name] if name is not None else kind
    others = [other for other in change.columns_of_others(column.name) if held_type(other) == present]
    if name is None or not others or widens(present, kind) or holds(present, kind) or not _all_held(change, column):
        _ensure_column(plan, column, previous)
        return
    # The shard's own rows are NULL in the column.
    own = plan_conversion(others[0], replace(column, nullable=True), mariadb=change.mariadb)
    _rewrite_all(plan, change, column, own, others[0])


def _all_held(change: ShardChange, column: Column) -> bool:
    """Whether the column's type holds the values of the other shards' columns with the same name."""
    kind = held_type(column)
    return all(other is not None and holds(kind, other) for other in change.types_of_others(column.name))


def _fill(plan: ColumnPlan, change: ShardChange, column: str, value: str) -> None:
    """Set a column that is NULL in the shard's rows to a value."""
    name = plan.name(column) or column
    if name in plan.rewritten:
        rewritten, kind = plan.rewritten[name]
        plan.rewritten[name] = _own_or(change, f"coalesce({rewritten}, {value})", rewritten), kind
    else:
        plan.values[column] = f"coalesce({quote(column)}, {value})"


def _rewrite_all(plan: ColumnPlan, change: ShardChange, new: Column, own: Conversion, others: Column) -> None:
    """Convert the column of every row to the type of the shard's column.

    Args:
        own: the conversion of the shard's own values.
        others: the column definition of the other shards' values. As text they are not truncated to the shard's length.
    """
    name, kind = plan.name(new.name), silver_type(new)
    assert name is not None, "the column exists"
    value = own.expression(quote(name))
    plan.doubt(own.reason)
    if kind == "STRING":
        long = replace(new, type="longtext", length=0, nullable=True)  # keeps the character set
        text = plan_conversion(replace(others, nullable=True), long, mariadb=change.mariadb)
        plan.doubt(text.reason)
        value = _own_or(change, f"CAST({value} AS STRING)", f"CAST({text.expression(quote(name))} AS STRING)")
    plan.rewritten[name] = value, kind
    plan.types[name] = held_type(new)


def _own_or(change: ShardChange, own: str, others: str) -> str:
    """The SQL of a value that differs between the shard's rows and those of the other shards."""
    return own if own == others else f"IF({own_older(change.target, change.at)}, {own}, {others})"


def _ensure_column(plan: ColumnPlan, column: Column, previous: str | None) -> None:
    """Add a column, or widen the existing one, so that it holds the shard's values."""
    kind, name = held_type(column), plan.name(column.name)
    if name is None:
        predecessor = plan.name(previous) if previous is not None else None
        where = f"AFTER {quote(predecessor)}" if predecessor is not None else "FIRST"
        plan.steps.append(f"ADD COLUMNS ({quote(column.name)} {silver_type(column)} {where})")
        plan.types[column.name] = kind
    elif widens(plan.types[name], kind):
        plan.steps.append(f"ALTER COLUMN {quote(name)} TYPE {silver_type(column)}")
        plan.types[name] = kind
    elif not holds(plan.types[name], kind):
        raise SchemaError(f"{column.name} is {kind} in the shard and {plan.types[name]} in the merged table")


def _change(plan: ColumnPlan, change: ShardChange, old: Column, new: Column, previous: str | None) -> None:
    """Rename a column, convert it, or both."""
    existing, name = plan.name(old.name), plan.name(new.name)
    if old.name.lower() != new.name.lower() and existing is not None:
        if name is None and not change.others_have(old.name):
            plan.steps.append(f"RENAME COLUMN {quote(existing)} TO {quote(new.name)}")
            plan.types = {new.name if known == existing else known: kind for known, kind in plan.types.items()}
        else:
            _ensure_column(plan, new, previous)
            _fill(plan, change, new.name, quote(existing))
            _drop(plan, change, existing)
    elif existing is None and name is None:
        return  # the merged table omits it
    _convert(plan, change, old, new)


def _convert(plan: ColumnPlan, change: ShardChange, old: Column, new: Column) -> None:
    """Convert a column to the new type: in all rows if no other shard has another type, else in the shard's rows."""
    name, kind = plan.name(new.name), held_type(new)
    conversion = plan_conversion(old, new, mariadb=change.mariadb)
    assert name is not None, "the column exists"
    if conversion.kind is ConversionKind.STOP:
        plan.doubt(conversion.reason)
    if conversion.kind is ConversionKind.SAME:
        return
    present = plan.types[name]
    if present == kind:
        if conversion.kind is ConversionKind.REWRITE:
            plan.values[name] = conversion.expression(plan.values.get(name, quote(name)))
    elif widens(present, kind):
        plan.steps.append(f"ALTER COLUMN {quote(name)} TYPE {silver_type(new)}")
        plan.types[name] = kind
    elif change.types_of_others(name) <= {kind}:
        _rewrite_all(plan, change, new, conversion, old)
    elif widens(kind, present):
        if conversion.kind is ConversionKind.REWRITE:
            value = conversion.expression(plan.values.get(name, quote(name)))
            plan.values[name] = f"CAST({value} AS {present})"
    elif _all_held(change, new):
        same_type = [other for other in change.columns_of_others(name) if held_type(other) == present]
        _rewrite_all(plan, change, new, conversion, same_type[0] if same_type else old)
    else:
        raise SchemaError(f"{name} becomes {kind}, which does not hold the {present} values of other shards")


def own_older(target: Target, at: Position) -> str:
    """The condition (SQL) for the shard's rows that an event before `at` wrote."""
    return f"{target.own_rows} AND {older_than(at)}"
