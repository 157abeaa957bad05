"""Schema evolution: the Delta commits that apply an ALTER of the source table to its silver table, as a pure plan.

Names, column order and widened types are metadata and rewrite no files. Any other type conversion is one commit that
rewrites the table. Existing rows get the values that MySQL gives them. Where these cannot be determined, the plan says
so, and a table that has rows cannot apply the statement.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dmdelta.ddl.tracking.effects import Altered
from dmdelta.ddl.types.conversion import Conversion, ConversionKind, plan_conversion
from dmdelta.ddl.types.silver_types import COMMITTED_AT, VERSION, silver_columns, silver_type
from dmdelta.lakehouse.changes import Change, Verb
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.model.spark_sql import literal, quote

CLUSTERED_COLUMNS = 4
_CLUSTERABLE = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE", "DATE", "TIMESTAMP", "STRING")
INDEXED_COLUMNS = 32
"""Delta collects statistics for this many leading columns by default; clustering requires statistics."""


@dataclass(frozen=True, slots=True)
class SilverChange:
    """The commits that apply a statement.

    Attributes:
        unknown: why a table that has rows cannot apply it; '' if it can.
    """

    changes: tuple[Change, ...]
    unknown: str = ""


def plan_change(altered: Altered, at: Position, *, mariadb: bool = False) -> SilverChange:
    """The commits that apply an ALTER at position `at` to silver."""
    conversions = _conversions(altered, mariadb=mariadb)
    unknown = _unknown(altered, conversions)
    if any(_changes_type(conversion, altered, index) for index, conversion in enumerate(conversions)):
        return SilverChange(_rewritten(altered, conversions), unknown)
    return SilverChange(_in_place(altered, conversions, at), unknown)


def plan_columns_after(altered: Altered, *, mariadb: bool) -> tuple[list[str], str]:
    """The columns (SQL) of silver after an ALTER, from the rows before it, for a query that changes no table.

    Returns:
        The columns, and why a table that has rows cannot have them; '' if it can.
    """
    conversions = _conversions(altered, mariadb=mariadb)
    return _rewritten_columns(altered, conversions), _unknown(altered, conversions)


def _conversions(altered: Altered, *, mariadb: bool) -> list[Conversion | None]:
    """The conversion of each column after the change; None for new columns."""
    before = {column.name: column for column in altered.before.columns}
    return [
        plan_conversion(before[origin.was], column, mariadb=mariadb) if origin.was is not None else None
        for origin, column in zip(altered.origins, altered.after.columns, strict=True)
    ]


def _unknown(altered: Altered, conversions: Sequence[Conversion | None]) -> str:
    stops = [conversion.reason for conversion in conversions if conversion and conversion.kind is ConversionKind.STOP]
    fills = [origin.fill.unknown for origin in altered.origins if origin.was is None and origin.fill.unknown]
    return next((reason for reason in (altered.doubt, *stops, *fills) if reason), "")


def _changes_type(conversion: Conversion | None, altered: Altered, index: int) -> bool:
    """Whether every row of a column has to be rewritten, because Delta cannot widen to the new type."""
    if conversion is None or conversion.kind in (ConversionKind.SAME, ConversionKind.WIDEN):
        return False
    old = next(column for column in altered.before.columns if column.name == altered.origins[index].was)
    kinds = {silver_type(old), silver_type(altered.after.columns[index])}
    return len(kinds) > 1 or "VARIANT" in kinds


def cluster_columns(schema: TableSchema) -> tuple[str, ...]:
    """The key columns that a table is clustered by."""
    columns = {column.name: column for column in schema.columns}
    names = [name for name in schema.primary_key if silver_type(columns[name]).startswith(_CLUSTERABLE)]
    return tuple(names[:CLUSTERED_COLUMNS])


def indexed_columns(schema: TableSchema) -> int | None:
    """How many leading columns need statistics so that the key has them; None if Delta's default is enough."""
    names = [column.name for column in schema.columns]
    last = max((names.index(name) for name in schema.primary_key), default=0)
    return last + 1 if last >= INDEXED_COLUMNS else None


def clustering(schema: TableSchema) -> tuple[Change, ...]:
    """Cluster a table by its key."""
    names = cluster_columns(schema)
    if not names:
        return (Change(Verb.ALTER, "CLUSTER BY NONE"),)
    count = indexed_columns(schema)
    counted = f"SET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '{count}')"
    by_key = Change(Verb.ALTER, f"CLUSTER BY ({', '.join(map(quote, names))})")
    return (Change(Verb.ALTER, counted), by_key) if count else (by_key,)


def _rewritten(altered: Altered, conversions: Sequence[Conversion | None]) -> tuple[Change, ...]:
    """One commit that rewrites every row, then the clustering, which Delta drops with the rewrite."""
    rewrite = Change(Verb.REWRITE, ", ".join(_rewritten_columns(altered, conversions)))
    return (rewrite, *(clustering(altered.after) if cluster_columns(altered.after) else ()))


def _rewritten_columns(altered: Altered, conversions: Sequence[Conversion | None]) -> list[str]:
    values = []
    for origin, column, conversion in zip(altered.origins, altered.after.columns, conversions, strict=True):
        value = "NULL"  # also for an unknown conversion: the table has no rows then
        if origin.was is None or conversion is None:
            value = origin.fill.sql or value
        elif conversion.kind is not ConversionKind.STOP:
            value = conversion.expression(quote(origin.was))
        values.append(f"CAST({value} AS {silver_type(column)}) AS {quote(column.name)}")
    return [*values, VERSION, COMMITTED_AT]


def _in_place(altered: Altered, conversions: Sequence[Conversion | None], at: Position) -> tuple[Change, ...]:
    after = altered.after
    kept = {
        origin.was: column.name for origin, column in zip(altered.origins, after.columns, strict=True) if origin.was
    }
    clustered = cluster_columns(altered.before)
    steps: list[str] = []
    names = [column.name for column in altered.before.columns]
    dropped = [name for name in names if name not in kept]
    if any(name in dropped for name in clustered):
        steps.append("CLUSTER BY NONE")
        clustered = ()
    if dropped:
        steps.append(f"DROP COLUMNS ({', '.join(map(quote, dropped))})")
        names = [name for name in names if name not in dropped]
    for old, new in plan_renames({was: name for was, name in kept.items() if was != name}, names):
        steps.append(f"RENAME COLUMN {quote(old)} TO {quote(new)}")
        names[names.index(old)] = new
    steps += [
        f"ALTER COLUMN {quote(column.name)} TYPE {silver_type(column)}"
        for column, conversion in zip(after.columns, conversions, strict=True)
        if conversion and conversion.kind is ConversionKind.WIDEN
    ]
    steps += _ordered(after.columns, names)
    changes = [Change(Verb.ALTER, step) for step in steps]
    changes += _converted(altered, conversions, at)
    changes += _filled(altered, at)
    if cluster_columns(after) != tuple(kept.get(name, name) for name in clustered):
        changes += clustering(after)
    return tuple(changes)


def plan_renames(renames: dict[str, str], names: Sequence[str]) -> list[tuple[str, str]]:
    """Order renames of columns among `names` so that no rename uses a name (in any letter case) that is in use."""
    steps: list[tuple[str, str]] = []
    waiting, used = dict(renames), {name.lower() for name in names}
    while waiting:
        free = [old for old, new in waiting.items() if new.lower() not in used]
        if free:
            old = free[0]
            new = waiting.pop(old)
        else:
            old = next(iter(waiting))
            new = f"_dm_renamed_{len(steps)}"
            waiting = {new if name == old else name: to for name, to in waiting.items()}
        steps.append((old, new))
        used = used - {old.lower()} | {new.lower()}
    return steps


def _ordered(columns: Sequence[Column], names: Sequence[str]) -> list[str]:
    """Add missing columns and move others into order, from the first column on. `names` are the existing columns."""
    present, steps = list(names), []
    for index, column in enumerate(columns):
        where = f"AFTER {quote(columns[index - 1].name)}" if index else "FIRST"
        if column.name not in present:
            steps.append(f"ADD COLUMNS ({quote(column.name)} {silver_type(column)} {where})")
        elif present[index] != column.name:
            steps.append(f"ALTER COLUMN {quote(column.name)} {where}")
            present.remove(column.name)
        else:
            continue
        present.insert(index, column.name)
    return steps


def _converted(altered: Altered, conversions: Sequence[Conversion | None], at: Position) -> tuple[Change, ...]:
    """Update existing rows to the values that MySQL converts theirs to, where silver's type does not change."""
    expressions = {
        quote(column.name): conversion.expression(quote(column.name))
        for column, conversion in zip(altered.after.columns, conversions, strict=True)
        if conversion is not None and conversion.kind is ConversionKind.REWRITE
    }
    if not expressions:
        return ()
    values = ", ".join(f"{name} = {value}" for name, value in expressions.items())
    differ = " OR ".join(f"NOT ({name} <=> ({value}))" for name, value in expressions.items())
    return (Change(Verb.UPDATE, f"SET {values} WHERE {older_than(at)} AND ({differ})"),)


def _filled(altered: Altered, at: Position) -> tuple[Change, ...]:
    """Update existing rows with the values of new columns."""
    pairs = zip(altered.origins, altered.after.columns, strict=True)
    filled = {quote(column.name): origin.fill.sql for origin, column in pairs if origin.was is None and origin.fill.sql}
    if not filled:
        return ()
    values = ", ".join(f"{name} = coalesce({name}, {value})" for name, value in filled.items())
    unfilled = " OR ".join(f"{name} IS NULL" for name in filled)
    return (Change(Verb.UPDATE, f"SET {values} WHERE {older_than(at)} AND ({unfilled})"),)


def version_at(at: Position) -> str:
    """The `_dm_version` (SQL) of the first row of an event at a position."""
    return f"named_struct('epoch', {at.epoch}, 'seq', {at.seq}L, 'row', 0)"


def older_than(at: Position) -> str:
    """The condition (SQL) for rows that an event before `at` wrote."""
    return f"{VERSION} < {version_at(at)}"


def plan_truncation(at: Position) -> tuple[Change, ...]:
    """Delete a table's rows."""
    return (Change(Verb.DELETE, older_than(at)),)


DROPPED = "dmdelta.dropped"
"""The property of a silver table whose source table was dropped; its value is the position of the DROP."""
UNMARK = Change(Verb.ALTER, f"UNSET TBLPROPERTIES IF EXISTS ({literal(DROPPED)})")
"""Removes the property: the source table exists again."""


def plan_drop(at: Position) -> tuple[Change, ...]:
    """Delete a table's rows and set the property DROPPED. The files remain as long as the table's history is kept."""
    return (*plan_truncation(at), Change(Verb.ALTER, f"SET TBLPROPERTIES ({literal(DROPPED)} = {literal(str(at))})"))


def plan_creation(schema: TableSchema, at: Position, *, fits: bool) -> tuple[Change, ...]:
    """Create a table where a silver table exists already.

    Args:
        fits: the existing table has the same columns; its key may be another one.
    """
    if fits:
        return (*plan_truncation(at), *clustering(schema), UNMARK)
    columns = ", ".join(f"CAST(NULL AS {kind}) AS {quote(name)}" for name, kind in silver_columns(schema).items())
    return (Change(Verb.REWRITE, f"{columns} WHERE false"), *clustering(schema), UNMARK)
