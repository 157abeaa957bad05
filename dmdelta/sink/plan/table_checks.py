"""Checks before a task runs whether the target's tables can hold the source's rows: a pure evaluation."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dmdelta.ddl.types.type_words import characters
from dmdelta.errors import SinkError
from dmdelta.model.schema import Column, TableName, TableSchema
from dmdelta.model.type_names import BLOBS, BYTES, CHARACTERS, INTEGERS, NAMED, SIZED, TEXTS, TEXTUAL
from dmdelta.sink.plan.creation import create_table, nearest_collations
from dmdelta.sink.plan.table_mapping import FAMILIES

SHOWN = 5
"""Number of columns listed in a message; the others are counted."""
_UNICODE = frozenset({"utf8mb4", "utf16", "utf16le", "utf32", "gb18030"})
"""Character sets that hold every character of the others."""


@dataclass(frozen=True, slots=True)
class TargetCheck:
    """The result of one check; `fix` is empty if it passes, `stops`: the sink cannot run."""

    name: str
    passes: bool
    message: str
    fix: str = ""
    stops: bool = False


@dataclass(frozen=True, slots=True)
class TargetTables:
    """The target's tables.

    Attributes:
        tables: those that the sink writes to and that exist.
        required: their columns that need a value and have no default.
        collations: all of the target's.
    """

    tables: Mapping[TableName, TableSchema] = field(default_factory=dict)
    required: Mapping[TableName, Collection[str]] = field(default_factory=dict)
    collations: Collection[str] = ()


def plan_table_checks(sources: Sequence[TableSchema], target: TargetTables, *, tidb: bool) -> list[TargetCheck]:
    """Evaluate the tables: one check that passes, or one for each kind of incompatibility.

    Args:
        sources: the source's tables, under the target's names.
        tidb: the target is TiDB.
    """
    pairs = [(one, target.tables[one.name]) for one in sources if one.name in target.tables]
    missing = [one for one in sources if one.name not in target.tables]
    found = [*_existing(pairs, target), *_created(missing, target, tidb=tidb)]
    return found or [TargetCheck("table_schema", True, f"{len(pairs):,} tables fit, {len(missing):,} will be created")]


def _existing(pairs: Sequence[tuple[TableSchema, TableSchema]], target: TargetTables) -> Iterator[TargetCheck]:
    lacking = [f"{one}.{column.name}" for one, held in pairs for column in one.columns if _of(held, column) is None]
    if lacking:
        fix = "ALTER TABLE … ADD COLUMN in the target, with the source's definitions"
        yield TargetCheck("table_schema", False, f"the target lacks columns: {_listed(lacking)}", fix, stops=True)
    own = [f"{one}.{name}" for one, held in pairs for name in _own_required(one, target.required.get(held.name, ()))]
    if own:
        message = f"columns of the target's own need a value and have no default: {_listed(own)}"
        yield TargetCheck("table_schema", False, message, "give them a default, or make them nullable", stops=True)
    for check, message, fix, differs in _DIFFERENCES:
        columns = [
            f"{one}.{column.name}"
            for one, held in pairs
            for column in one.columns
            if (in_target := _of(held, column)) is not None and differs(column, in_target)
        ]
        if columns:
            yield TargetCheck(check, False, f"{message}: {_listed(columns)}", fix)


def _created(missing: Sequence[TableSchema], target: TargetTables, *, tidb: bool) -> Iterator[TargetCheck]:
    nearest: dict[str, str] = {}
    for one in missing:
        try:
            create_table(one, target.collations, tidb=tidb)
        except SinkError as error:
            yield TargetCheck("table_schema", False, error.message, error.hint or "", stops=True)
        nearest |= {} if tidb else nearest_collations(one, target.collations)
    if nearest:
        replaced = [f"{wanted} → {used}" for wanted, used in sorted(nearest.items())]
        message = (
            f"tables that are created get other collations, because the target lacks the source's: {_listed(replaced)}"
        )
        yield TargetCheck(
            "collation", False, message, "create the tables in the target, if another collation is better"
        )


def _of(held: TableSchema, column: Column) -> Column | None:
    return next((one for one in held.columns if one.name.lower() == column.name.lower()), None)


def _own_required(one: TableSchema, required: Collection[str]) -> list[str]:
    written = {column.name.lower() for column in one.columns}
    return [name for name in required if name.lower() not in written]


def _is_other_type(column: Column, held: Column) -> bool:
    if column.type == held.type:
        return False
    if column.type in ("json", *NAMED) and held.type in CHARACTERS:
        return False
    if column.type in ("geometry", "vector") and held.type in BYTES:
        return False
    return not any(column.type in family and held.type in family for family in FAMILIES)


def _is_narrower(column: Column, held: Column) -> bool:
    """The target's column cannot hold every value of the source's, of the same family of types."""
    for family in (INTEGERS, TEXTS, BLOBS):
        if column.type in family and held.type in family:
            signs = column.type in INTEGERS and column.unsigned != held.unsigned
            wider = family.index(held.type) > family.index(column.type)
            return family.index(held.type) < family.index(column.type) or (signs and (held.unsigned or not wider))
    if column.type in NAMED and held.type == column.type:
        return not set(column.members) <= set(held.members)
    if column.type in SIZED and held.type in SIZED:
        return _characters(held) < _characters(column)
    if column.type == held.type == "decimal":
        whole = held.precision - held.scale < column.precision - column.scale
        return whole or held.scale < column.scale or (held.unsigned and not column.unsigned)
    if column.type == held.type:
        return held.precision < column.precision or held.length < column.length
    return (column.type, held.type) == ("double", "float")


def _characters(column: Column) -> int:
    """The declared length; `length` counts bytes."""
    return characters(column) or column.length


def _loses_characters(column: Column, held: Column) -> bool:
    if column.charset is None or held.charset is None or column.type not in TEXTUAL:
        return False
    return held.charset not in {column.charset, *_UNICODE} and column.charset != "ascii"


_Differs = Callable[[Column, Column], bool]
_STRICT = "a value that does not fit stops the sink"
_DIFFERENCES: tuple[tuple[str, str, str, _Differs], ...] = (
    (
        "column_type",
        f"the target's columns have another type than the source's, {_STRICT}",
        "ALTER TABLE … MODIFY in the target, with the source's types",
        _is_other_type,
    ),
    (
        "column_type",
        f"the target's columns are narrower than the source's, {_STRICT}",
        "ALTER TABLE … MODIFY in the target, with the source's types",
        _is_narrower,
    ),
    (
        "character_set",
        f"the target's columns have a character set that lacks characters of the source's, {_STRICT}",
        "ALTER TABLE … MODIFY … CHARACTER SET utf8mb4 in the target",
        _loses_characters,
    ),
)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
