"""How a merged table follows a statement on one of its shards: a pure plan of single Delta commits.

What the statement did to the shard's rows is done to the shard's rows; what it did to the columns is done once, by
whichever shard comes first with it. A column that other shards still have stays for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dmdelta.ddl.conversion import Conversion, ConversionKind, plan_conversion
from dmdelta.ddl.effects import Altered
from dmdelta.ddl.outcome import widens
from dmdelta.ddl.types import COMMITTED_AT, VERSION, silver_type
from dmdelta.errors import SchemaError
from dmdelta.lakehouse.changes import Change, Verb
from dmdelta.lakehouse.place import literal, quote
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, StoredColumn, TableSchema
from dmdelta.sharding import Columns, held_type, holds, name_among
from dmdelta.silver.evolution import SilverChange, cluster_columns, clustering, older_than
from dmdelta.silver.target import Target

LEFT_OUT = "dmdelta.left-out"
"""The property of a merged table: columns of shards that it goes without, as names separated by commas."""


@dataclass(frozen=True, slots=True)
class ShardChange:
    """A change of a shard's structure, and what it meets.

    Attributes:
        there: the merged table's columns.
        others: the other shards' structures, None for one that nobody knows.
    """

    target: Target
    altered: Altered
    there: Columns
    others: Sequence[TableSchema | None]
    at: Position
    mariadb: bool = False

    def others_have(self, column: str) -> bool:
        """Rows of another shard may hold a value in it."""
        return bool(self.types_of_others(column))

    def types_of_others(self, column: str) -> set[str | None]:
        """The types of a column in the other shards; None among them for a shard that nobody knows."""
        found: set[str | None] = {None} if None in self.others else set()
        for other in self.others:
            known = other.columns if other is not None else ()
            found |= {held_type(own) for own in known if own.name.lower() == column.lower()}
        return found


@dataclass(slots=True)
class _Plan:
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


def plan_shard_change(change: ShardChange) -> SilverChange:
    """What a change of a shard's structure does to the merged table.

    Raises:
        SchemaError: a name stands for another column afterwards, or a type does not fit.
    """
    taken = change.altered.reused_name
    if taken is not None:
        raise SchemaError(f"another column of the shard gets the name {taken} by the same statement")
    plan = _Plan(dict(change.there.types), unknown=change.altered.doubt)
    kept = {origin.was for origin in change.altered.origins}
    for column in change.altered.before.columns:
        if column.name not in kept and (name := plan.name(column.name)) is not None:
            _take_away(plan, change, name)
    before = {column.name: column for column in change.altered.before.columns}
    pairs = list(zip(change.altered.origins, change.altered.after.columns, strict=True))
    for place, (origin, column) in enumerate(pairs):
        if column.name.lower() in change.there.left_out:
            continue
        previous = pairs[place - 1][1].name if place else None
        if origin.was is None:
            _have(plan, column, previous)
            plan.doubt(origin.fill.unknown)
            if origin.fill.sql:
                plan.values[column.name] = f"coalesce({quote(column.name)}, {origin.fill.sql})"
        else:
            _carry_on(plan, change, before[origin.was], column, previous)
    return SilverChange(_changes(plan, change), plan.unknown)


def _take_away(plan: _Plan, change: ShardChange, name: str) -> None:
    """The shard has a column no more: others may."""
    if change.others_have(name):
        plan.values[name] = "NULL"
    else:
        plan.gone.append(name)
        del plan.types[name]


def _have(plan: _Plan, column: Column, previous: str | None) -> None:
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


def _carry_on(plan: _Plan, change: ShardChange, old: Column, new: Column, previous: str | None) -> None:
    """A column goes on, under its name or another, with its type or another."""
    there, name = plan.name(old.name), plan.name(new.name)
    conversion = plan_conversion(old, new, mariadb=change.mariadb)
    if old.name.lower() != new.name.lower() and there is not None:
        if name is None and not change.others_have(old.name):
            plan.steps.append(f"RENAME COLUMN {quote(there)} TO {quote(new.name)}")
            plan.types = {new.name if known == there else known: kind for known, kind in plan.types.items()}
        else:
            _have(plan, new, previous)
            plan.values[new.name] = f"coalesce({quote(new.name)}, {quote(there)})"
            _take_away(plan, change, there)
    elif there is None and name is None:
        return  # left out
    _convert(plan, change, new, conversion)


def _convert(plan: _Plan, change: ShardChange, new: Column, conversion: Conversion) -> None:
    """Give the values the new type; all shards' if no other holds another one."""
    name, kind = plan.name(new.name), held_type(new)
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
        plan.rewritten[name] = conversion.expression(quote(name)), silver_type(new)
        plan.types[name] = kind
    elif widens(kind, present):
        if conversion.kind is ConversionKind.REWRITE:
            value = conversion.expression(plan.values.get(name, quote(name)))
            plan.values[name] = f"CAST({value} AS {present})"
    elif all(other is not None and holds(kind, other) for other in change.types_of_others(name)):
        plan.rewritten[name] = conversion.expression(quote(name)), silver_type(new)
        plan.types[name] = kind
    else:
        raise SchemaError(f"{name} becomes {kind}, and other shards hold {present} in it")


def _changes(plan: _Plan, change: ShardChange) -> tuple[Change, ...]:
    before, after = change.target.seen(change.altered.before), change.target.seen(change.altered.after)
    unclustered = bool({*map(str.lower, cluster_columns(before))} & {*map(str.lower, plan.gone)})
    steps = ["CLUSTER BY NONE", *plan.steps] if unclustered else plan.steps
    changes = [*(Change(Verb.ALTER, step) for step in steps), *_own_rows(plan, change)]
    if plan.rewritten:
        changes.append(_rewrite(plan, change))
    elif plan.gone:
        changes.append(Change(Verb.ALTER, f"DROP COLUMNS ({', '.join(map(quote, plan.gone))})"))
    if (before.primary_key != after.primary_key or plan.rewritten or unclustered) and cluster_columns(after):
        changes += clustering(after)
    return tuple(changes)


def _own_rows(plan: _Plan, change: ShardChange) -> list[Change]:
    if not plan.values:
        return []
    values = ", ".join(f"{quote(name)} = {value}" for name, value in plan.values.items())
    differ = " OR ".join(f"NOT ({quote(name)} <=> ({value}))" for name, value in plan.values.items())
    return [Change(Verb.UPDATE, f"SET {values} WHERE {own_older(change.target, change.at)} AND ({differ})")]


def _rewrite(plan: _Plan, change: ShardChange) -> Change:
    columns = []
    for name in plan.types:
        value, kind = plan.rewritten.get(name, (quote(name), ""))
        columns.append(f"CAST({value} AS {kind}) AS {quote(name)}" if kind else value)
    columns += [quote(column.name) for column in change.target.constants]
    return Change(Verb.REWRITE, ", ".join([*columns, VERSION, COMMITTED_AT]))


def own_older(target: Target, at: Position) -> str:
    """The shard's rows that an event before `at` wrote (SQL)."""
    return f"{target.own_rows} AND {older_than(at)}"


def seen_among(target: Target, schema: TableSchema, there: Columns, *, missing_too: bool = False) -> TableSchema:
    """A shard's structure as the merged table has it: in the types that are there, without what is left out.

    Args:
        missing_too: statements may have been left out, so that what is not there is left out, too.

    Raises:
        SchemaError: a column that is not left out is not there, or one of the key is.
    """
    columns: list[Column] = []
    for column in schema.columns:
        kind = there.type(column.name)
        if kind is None:
            left_out = missing_too or column.name.lower() in there.left_out
            if not left_out or column.name in schema.primary_key:
                raise SchemaError(f"the merged table {target.place} has no column {column.name}")
        elif kind == held_type(column):
            columns.append(column)
        else:
            columns.append(StoredColumn.of(column, kind))
    return target.seen(replace(schema, columns=tuple(columns)))


def plan_leaving_out(change: ShardChange) -> SilverChange:
    """A statement is not followed: the merged table keeps its columns, and goes without those that the shard gained.

    Raises:
        SchemaError: a value of the shard's new type does not fit.
    """
    altered, there = change.altered, change.there
    for column in altered.after.columns:
        present = there.type(column.name)
        if present is not None and not holds(present, held_type(column)):
            raise SchemaError(f"{column.name} is {silver_type(column)} from now on, which {present} does not hold")
    kept = {column.name.lower() for column in altered.after.columns}
    lost = [name for column in altered.before.columns if (name := there.name(column.name)) and name.lower() not in kept]
    plan = _Plan(dict(there.types), values=dict.fromkeys(lost, "NULL"))
    gained = {column.name.lower() for column in altered.after.columns if there.name(column.name) is None}
    names = ",".join(sorted(gained | there.left_out))
    noted = [Change(Verb.ALTER, f"SET TBLPROPERTIES ({literal(LEFT_OUT)} = {literal(names)})")] if gained else []
    return SilverChange((*noted, *_own_rows(plan, change)))
