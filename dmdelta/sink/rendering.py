"""The query that turns a table's bronze rows into texts for the target: rows of (op, seq, row, texts), no values."""

from dataclasses import dataclass

from dmdelta.changelog.ranges import XaGroup, in_group
from dmdelta.lakehouse.place import literal
from dmdelta.sink import literals
from dmdelta.sink.plan import KeyPlan, TablePlan


@dataclass(frozen=True, slots=True)
class Rendering:
    """What is asked for.

    Attributes:
        plan: how the table is written.
        where: the bronze rows, as SQL.
        groups: XA transactions among them, whose rows stand where they commit.
        partial: some images hold only some of the columns.
        assigned: updates are wanted as assignments, too.
        moves: updates may change the source's primary key.
    """

    plan: TablePlan
    where: str
    groups: tuple[XaGroup, ...] = ()
    partial: bool = False
    assigned: bool = False
    moves: bool = True


def rendering_query(bronze: str, wanted: Rendering) -> str:
    """The query. Its columns: op, seq (where the row takes effect), row, own (the row's own seq), identity, was,
    values, sets, new and old (arrays of keys; None where the identity says all).
    """
    plan = wanted.plan
    partial = "image IS NOT NULL" if wanted.partial else "false"
    inner = f"""SELECT IF(op = 'read', 'insert', op) AS op, {_effective(wanted.groups)} AS at, row, seq AS own,
        before, after, IF(op = 'delete', before, after) AS present, image, {partial} AS partial,
        {"op = " + literal("update") + (" AND key_changed" if _moves_as_source(plan) else "")} AS moves
        FROM {bronze} WHERE {wanted.where}"""
    columns = {
        "op": "op",
        "seq": "at",
        "row": "row",
        "own": "own",
        "identity": _identity(plan),
        "was": _was(plan),
        "values": _values(plan, wanted),
        "sets": _sets(plan, wanted),
        "new": "NULL" if plan.plain else _keys(plan, "present", wanted),
        "old": _old_keys(plan, wanted),
    }
    listed = ", ".join(f"{value} AS {name}" for name, value in columns.items())
    return f"SELECT {listed} FROM ({inner})"


def _effective(groups: tuple[XaGroup, ...]) -> str:
    if not groups:
        return "seq"
    cases = " ".join(f"WHEN {in_group(group)} THEN {group.until[1]}L" for group in groups)
    return f"CASE WHEN xid IS NULL THEN seq {cases} ELSE seq END"


def _moves_as_source(plan: TablePlan) -> bool:
    """The target's rows are found by the source's primary key: bronze knows which updates change it."""
    return [column.name for column in plan.identity] == list(plan.schema.primary_key)


def _identity(plan: TablePlan) -> str:
    if not plan.identity:
        return f"IF(op = 'insert', '', {literals.condition_literal('before', plan.columns)})"
    return literals.identity_literal("present", plan.identity)


def _was(plan: TablePlan) -> str:
    if not plan.identity:
        return "CAST(NULL AS STRING)"
    before = literals.identity_literal("before", plan.identity)
    return f"IF(moves, nullif({before}, {literals.identity_literal('present', plan.identity)}), NULL)"


def _values(plan: TablePlan, wanted: Rendering) -> str:
    values = literals.tuple_literal("after", tuple(column for _, column in plan.columns))
    return f"IF(op = 'delete'{' OR partial' if wanted.partial else ''}, NULL, {values})"


def _sets(plan: TablePlan, wanted: Rendering) -> str:
    sets = literals.assignments("after", plan.columns, "image" if wanted.partial else None)
    needed = "op = 'update'" if wanted.assigned or plan.shape.keyless else "moves"
    return (
        f"IF(({needed}){' OR (partial AND op <> ' + literal('delete') + ')' if wanted.partial else ''}, {sets}, NULL)"
    )


def _keys(plan: TablePlan, image: str, wanted: Rendering) -> str:
    """The keys of an image, those with NULL left out: NULL meets nothing."""
    if plan.whole or (wanted.partial and len(plan.keys) > 1):
        return f"array({literal(plan.table_key)})"
    if not plan.keys:
        whole = literals.tuple_literal(image, tuple(column for _, column in plan.columns))
        return f"array(concat(md5({whole}), {literal('.' + plan.shape.table)}))"
    keys = ", ".join(_key(key, image) for key in plan.keys)
    found = f"array_compact(array({keys}))"
    if plan.identity:
        return found
    whole = literals.tuple_literal(image, tuple(column for _, column in plan.columns))
    return f"array_append({found}, concat(md5({whole}), {literal('.' + plan.shape.table)}))"


def _key(key: KeyPlan, image: str) -> str:
    parts = [f"{literals.key_text(image, column, prefix)}, {literal('.' + name)}" for column, name, prefix in key.parts]
    joined = ", '.', ".join(parts)
    return f"concat({joined}, {literal(key.ends)})"


def _old_keys(plan: TablePlan, wanted: Rendering) -> str:
    if plan.plain:
        return "NULL"
    needed = "moves" if len(plan.keys) == 1 and plan.identity else "op = 'update'"
    return f"IF({needed}, {_keys(plan, 'before', wanted)}, NULL)"
