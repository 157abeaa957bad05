"""How a silver table follows a change of its source table's structure: a pure plan of single Delta commits.

Names, places and widened types are metadata and rewrite no file. A type that MySQL converted otherwise is converted by
one commit that writes the table anew. Rows that were there get the values that MySQL gave them; where nobody can tell
these, the plan says so, and a table that has rows cannot follow.
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
"""As many columns at a table's begin have statistics; clustering needs them."""


@dataclass(frozen=True, slots=True)
class SilverChange:
    """The commits that follow a statement, and why a table that has rows cannot make them, '' if it can."""

    changes: tuple[Change, ...]
    unknown: str = ""


def plan_change(altered: Altered, at: Position, *, mariadb: bool = False) -> SilverChange:
    """What an ALTER at `at` does to silver."""
    before = {column.name: column for column in altered.before.columns}
    conversions: list[Conversion | None] = [
        plan_conversion(before[origin.was], column, mariadb=mariadb) if origin.was is not None else None
        for origin, column in zip(altered.origins, altered.after.columns, strict=True)
    ]
    stops = [found.reason for found in conversions if found and found.kind is ConversionKind.STOP]
    fills = [origin.fill.unknown for origin in altered.origins if origin.was is None and origin.fill.unknown]
    unknown = next((reason for reason in (altered.doubt, *stops, *fills) if reason), "")
    if any(_changes_type(found, altered, place) for place, found in enumerate(conversions)):
        return SilverChange(_written_anew(altered, conversions), unknown)
    return SilverChange(_in_place(altered, conversions, at), unknown)


def _changes_type(conversion: Conversion | None, altered: Altered, place: int) -> bool:
    """Every row of a column has to be written, of a type that Delta does not widen to."""
    if conversion is None or conversion.kind in (ConversionKind.SAME, ConversionKind.WIDEN):
        return False
    old = next(column for column in altered.before.columns if column.name == altered.origins[place].was)
    kinds = {silver_type(old), silver_type(altered.after.columns[place])}
    return len(kinds) > 1 or "VARIANT" in kinds


def cluster_columns(schema: TableSchema) -> tuple[str, ...]:
    """The key columns that a table is clustered by."""
    columns = {column.name: column for column in schema.columns}
    names = [name for name in schema.primary_key if silver_type(columns[name]).startswith(_CLUSTERABLE)]
    return tuple(names[:CLUSTERED_COLUMNS])


def indexed_columns(schema: TableSchema) -> int | None:
    """How many columns must have statistics so that the key has them; None: as many as Delta takes by itself."""
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


def _written_anew(altered: Altered, conversions: Sequence[Conversion | None]) -> tuple[Change, ...]:
    """One commit with every row as it is now. Delta then forgets what the table is clustered by."""
    values = []
    for origin, column, conversion in zip(altered.origins, altered.after.columns, conversions, strict=True):
        value = "NULL"  # of a conversion that nobody knows, too: then the table has no rows
        if origin.was is None or conversion is None:
            value = origin.fill.sql or value
        elif conversion.kind is not ConversionKind.STOP:
            value = conversion.expression(quote(origin.was))
        values.append(f"CAST({value} AS {silver_type(column)}) AS {quote(column.name)}")
    rewrite = Change(Verb.REWRITE, ", ".join([*values, VERSION, COMMITTED_AT]))
    return (rewrite, *(clustering(altered.after) if cluster_columns(altered.after) else ()))


def _in_place(altered: Altered, conversions: Sequence[Conversion | None], at: Position) -> tuple[Change, ...]:
    after = altered.after
    kept = {
        origin.was: column.name for origin, column in zip(altered.origins, after.columns, strict=True) if origin.was
    }
    clustered = cluster_columns(altered.before)
    steps: list[str] = []
    names = [column.name for column in altered.before.columns]
    gone = [name for name in names if name not in kept]
    if any(name in gone for name in clustered):
        steps.append("CLUSTER BY NONE")
        clustered = ()
    if gone:
        steps.append(f"DROP COLUMNS ({', '.join(map(quote, gone))})")
        names = [name for name in names if name not in gone]
    for old, new in plan_renames({was: name for was, name in kept.items() if was != name}, names):
        steps.append(f"RENAME COLUMN {quote(old)} TO {quote(new)}")
        names[names.index(old)] = new
    steps += [
        f"ALTER COLUMN {quote(column.name)} TYPE {silver_type(column)}"
        for column, found in zip(after.columns, conversions, strict=True)
        if found and found.kind is ConversionKind.WIDEN
    ]
    steps += _placed(after.columns, names)
    changes = [Change(Verb.ALTER, step) for step in steps]
    changes += _adjusted(altered, conversions, at)
    changes += _filled(altered, at)
    if cluster_columns(after) != tuple(kept.get(name, name) for name in clustered):
        changes += clustering(after)
    return tuple(changes)


def plan_renames(renames: dict[str, str], names: Sequence[str]) -> list[tuple[str, str]]:
    """Renames, one after the other, of columns among `names`: none takes a name (in any case) while it is in use."""
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


def _placed(columns: Sequence[Column], names: Sequence[str]) -> list[str]:
    """Add what is missing and move what stands elsewhere, from the first column on; `names` are there now."""
    present, steps = list(names), []
    for place, column in enumerate(columns):
        where = f"AFTER {quote(columns[place - 1].name)}" if place else "FIRST"
        if column.name not in present:
            steps.append(f"ADD COLUMNS ({quote(column.name)} {silver_type(column)} {where})")
        elif present[place] != column.name:
            steps.append(f"ALTER COLUMN {quote(column.name)} {where}")
            present.remove(column.name)
        else:
            continue
        present.insert(place, column.name)
    return steps


def _adjusted(altered: Altered, conversions: Sequence[Conversion | None], at: Position) -> tuple[Change, ...]:
    """Give the rows that were there the values that MySQL made of theirs, where silver's type stays."""
    found = {
        quote(column.name): conversion.expression(quote(column.name))
        for column, conversion in zip(altered.after.columns, conversions, strict=True)
        if conversion is not None and conversion.kind is ConversionKind.REWRITE
    }
    if not found:
        return ()
    values = ", ".join(f"{name} = {value}" for name, value in found.items())
    differ = " OR ".join(f"NOT ({name} <=> ({value}))" for name, value in found.items())
    return (Change(Verb.UPDATE, f"SET {values} WHERE {older_than(at)} AND ({differ})"),)


def _filled(altered: Altered, at: Position) -> tuple[Change, ...]:
    """Give the rows that were there what new columns hold."""
    pairs = zip(altered.origins, altered.after.columns, strict=True)
    filled = {quote(column.name): origin.fill.sql for origin, column in pairs if origin.was is None and origin.fill.sql}
    if not filled:
        return ()
    values = ", ".join(f"{name} = coalesce({name}, {value})" for name, value in filled.items())
    unfilled = " OR ".join(f"{name} IS NULL" for name in filled)
    return (Change(Verb.UPDATE, f"SET {values} WHERE {older_than(at)} AND ({unfilled})"),)


def version_at(at: Position) -> str:
    """What the first row of an event at a position writes as `_dm_version` (SQL)."""
    return f"named_struct('epoch', {at.epoch}, 'seq', {at.seq}L, 'row', 0)"


def older_than(at: Position) -> str:
    """Rows that an event before `at` wrote (SQL)."""
    return f"{VERSION} < {version_at(at)}"


def plan_truncation(at: Position) -> tuple[Change, ...]:
    """A table's rows go."""
    return (Change(Verb.DELETE, older_than(at)),)


DROPPED = "dmdelta.dropped"
"""The property of a silver table whose source table was dropped: since where."""
UNMARK = Change(Verb.ALTER, f"UNSET TBLPROPERTIES IF EXISTS ({literal(DROPPED)})")
"""The source table is there again."""


def plan_drop(at: Position) -> tuple[Change, ...]:
    """A table goes: its rows are deleted, and a property says so. Its files stay as long as its history is kept."""
    return (*plan_truncation(at), Change(Verb.ALTER, f"SET TBLPROPERTIES ({literal(DROPPED)} = {literal(str(at))})"))


def plan_creation(schema: TableSchema, at: Position, *, fits: bool) -> tuple[Change, ...]:
    """A table begins in the place of one that was there.

    Args:
        fits: its columns are those that are there.
    """
    if fits:
        return (*plan_truncation(at), UNMARK)
    columns = ", ".join(f"CAST(NULL AS {kind}) AS {quote(name)}" for name, kind in silver_columns(schema).items())
    return (Change(Verb.REWRITE, f"{columns} WHERE false"), *clustering(schema), UNMARK)
