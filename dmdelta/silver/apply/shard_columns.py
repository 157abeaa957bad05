"""What a statement on one shard makes of the columns of its merged table: a pure plan, not yet commits.

What the statement did to the shard's rows is done to the shard's rows; what it did to the columns is done once, by
whichever shard comes first with it. A column that other shards still have stays for them.
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
    """A change of a shard's structure, and what it meets.

    Attributes:
        existing: the merged table's columns.
        others: the other shards' structures, None for one that nobody knows.
    """

    target: Target
    altered: Altered
    existing: Columns
    others: Sequence[TableSchema | None]
    at: Position
    mariadb: bool = False

    def others_have(self, column: str) -> bool:
        """Rows of another shard may hold a value in it."""
        return bool(self.types_of_others(column))

    def types_of_others(self, column: str) -> set[str | None]:
        """The types of a column in the other shards; None among them for a shard that nobody knows."""
        unknown: set[str | None] = {None} if None in self.others else set()
        return unknown | {held_type(own) for own in self.columns_of_others(column)}

    def columns_of_others(self, column: str) -> list[Column]:
        """A column as other shards have it that are known."""
        known = [own for other in self.others if other is not None for own in other.columns]
        return [own for own in known if own.name.lower() == column.lower()]


@dataclass(slots=True)
class ColumnPlan:
    """The commits, in the making.

    Attributes:
        types: the merged table's columns behind the commits so far.
        values: what the shard's own rows get, as SQL expressions by column.
        rewritten: columns that every row gets anew, by name: the SQL expression and the type.
        gone: columns that no shard has any more.
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
    """
    Raises:
        SchemaError: a name stands for another column afterwards, or a type does not fit.
    """
    taken = change.altered.reused_name
    if taken is not None:
        raise SchemaError(f"another column of the shard gets the name {taken} by the same statement")
    plan = ColumnPlan(dict(change.existing.types), unknown=change.altered.doubt)
    kept = {origin.was for origin in change.altered.origins}
    for column in change.altered.before.columns:
        if column.name not in kept and (name := plan.name(column.name)) is not None:
            _take_away(plan, change, name)
    before = {column.name: column for column in change.altered.before.columns}
    pairs = list(zip(change.altered.origins, change.altered.after.columns, strict=True))
    for place, (origin, column) in enumerate(pairs):
        if column.name.lower() in change.existing.left_out:
            continue
        previous = pairs[place - 1][1].name if place else None
        if origin.was is None:
            _gain(plan, change, column, previous)
            plan.doubt(origin.fill.unknown)
            if origin.fill.sql:
                _fill(plan, change, column.name, origin.fill.sql)
        else:
            _carry_on(plan, change, before[origin.was], column, previous)
    return plan


def _take_away(plan: ColumnPlan, change: ShardChange, name: str) -> None:
    """The shard has a column no more: others may."""
    if change.others_have(name):
        plan.values[name] = "NULL"
    else:
        plan.gone.append(name)
        del plan.types[name]


def _gain(plan: ColumnPlan, change: ShardChange, column: Column, previous: str | None) -> None:
    """The shard has a new column: what other shards hold in it becomes of its type where that holds all of it."""
    kind, name = held_type(column), plan.name(column.name)
    present = plan.types[name] if name is not None else kind
    others = [other for other in change.columns_of_others(column.name) if held_type(other) == present]
    if name is None or not others or widens(present, kind) or holds(present, kind) or not _all_held(change, column):
        _have(plan, column, previous)
        return
    own = plan_conversion(others[0], replace(column, nullable=True), mariadb=change.mariadb)  # of NULLs
    _rewrite_all(plan, change, column, own, others[0])


def _all_held(change: ShardChange, column: Column) -> bool:
    """The column's type holds what the other shards have under its name."""
    kind = held_type(column)
    return all(other is not None and holds(kind, other) for other in change.types_of_others(column.name))


def _fill(plan: ColumnPlan, change: ShardChange, column: str, value: str) -> None:
    """The shard's rows that have nothing in a column get a value."""
    name = plan.name(column) or column
    if name in plan.rewritten:
        rewritten, kind = plan.rewritten[name]
        plan.rewritten[name] = _own_or(change, f"coalesce({rewritten}, {value})", rewritten), kind
    else:
        plan.values[column] = f"coalesce({quote(column)}, {value})"


def _rewrite_all(plan: ColumnPlan, change: ShardChange, new: Column, own: Conversion, others: Column) -> None:
    """Give every row's value the type of the shard's column.

    Args:
        own: what becomes of the shard's own values.
        others: the column that the other shards' values are of: as text they are not cut to the shard's length.
    """
    name, kind = plan.name(new.name), silver_type(new)
    assert name is not None, "the column is there by now"
    value = own.expression(quote(name))
    plan.doubt(own.reason)
    if kind == "STRING":
        long = replace(new, type="longtext", length=0, nullable=True)  # of its character set
        text = plan_conversion(replace(others, nullable=True), long, mariadb=change.mariadb)
        plan.doubt(text.reason)
        value = _own_or(change, f"CAST({value} AS STRING)", f"CAST({text.expression(quote(name))} AS STRING)")
    plan.rewritten[name] = value, kind
    plan.types[name] = held_type(new)


def _own_or(change: ShardChange, own: str, others: str) -> str:
    """SQL: one value in the shard's rows, another one in those of the others."""
    return own if own == others else f"IF({own_older(change.target, change.at)}, {own}, {others})"


def _have(plan: ColumnPlan, column: Column, previous: str | None) -> None:
    """Have a column there that the shard's rows go to."""
    kind, name = held_type(column), plan.name(column.name)
    if name is None:
        behind = plan.name(previous) if previous is not None else None
        where = f"AFTER {quote(behind)}" if behind is not None else "FIRST"
        plan.steps.append(f"ADD COLUMNS ({quote(column.name)} {silver_type(column)} {where})")
        plan.types[column.name] = kind
    elif widens(plan.types[name], kind):
        plan.steps.append(f"ALTER COLUMN {quote(name)} TYPE {silver_type(column)}")
        plan.types[name] = kind
    elif not holds(plan.types[name], kind):
        raise SchemaError(f"{column.name} is {kind} in the shard and {plan.types[name]} in the merged table")


def _carry_on(plan: ColumnPlan, change: ShardChange, old: Column, new: Column, previous: str | None) -> None:
    """A column goes on, under its name or another, with its type or another."""
    there, name = plan.name(old.name), plan.name(new.name)
    if old.name.lower() != new.name.lower() and there is not None:
        if name is None and not change.others_have(old.name):
            plan.steps.append(f"RENAME COLUMN {quote(there)} TO {quote(new.name)}")
            plan.types = {new.name if known == there else known: kind for known, kind in plan.types.items()}
        else:
            _have(plan, new, previous)
            _fill(plan, change, new.name, quote(there))
            _take_away(plan, change, there)
    elif there is None and name is None:
        return  # left out
    _convert(plan, change, old, new)


def _convert(plan: ColumnPlan, change: ShardChange, old: Column, new: Column) -> None:
    """Give the values the new type; all shards' if no other holds another one."""
    name, kind = plan.name(new.name), held_type(new)
    conversion = plan_conversion(old, new, mariadb=change.mariadb)
    assert name is not None, "the column is there by now"
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
        held = [other for other in change.columns_of_others(name) if held_type(other) == present]
        _rewrite_all(plan, change, new, conversion, held[0] if held else old)
    else:
        raise SchemaError(f"{name} becomes {kind}, and other shards hold {present} in it")


def own_older(target: Target, at: Position) -> str:
    """The shard's rows that an event before `at` wrote (SQL)."""
    return f"{target.own_rows} AND {older_than(at)}"
