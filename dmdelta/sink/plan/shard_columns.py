"""What a shard's statement still has to do to the columns of the target's merged table: pure decisions.

Silver distinguishes the rows of the shards, the target does not: there a statement changes the rows of all shards at
once. So the sink compares the source's types and NOT NULL, where silver compares its own types.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from dmdelta.ddl.parse.actions import Drop
from dmdelta.ddl.parse.alter_parser import alter_actions
from dmdelta.ddl.parse.splitting import split_alter
from dmdelta.ddl.tokens import Cursor, tokenize
from dmdelta.ddl.tracking.effects import Altered
from dmdelta.ddl.types.outcome import widens
from dmdelta.ddl.types.type_words import characters
from dmdelta.model.mysql_sql import BLANK
from dmdelta.model.schema import Column, StoredColumn, TableSchema
from dmdelta.model.type_names import BYTES, INTEGERS, TEXTUAL
from dmdelta.sharding import Columns, Operation, Verb, held_type, name_among, operations

REQUIRED = "REQUIRED"
"""What the types of NOT NULL columns begin with."""
UNKNOWN = "UNKNOWN"
"""The type of a column that no shard has."""
_ADD = re.compile(rf"ADD{BLANK}+(COLUMN{BLANK}+)?(IF{BLANK}+NOT{BLANK}+EXISTS{BLANK}+)?", re.IGNORECASE)
_SIZED = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")


def target_type(column: Column) -> str:
    """The type by which the shards' columns are compared.

    Texts are one type, so are bytes: a longer one needs no agreement.
    """
    if column.type in _SIZED:
        kind = "TEXT"
    elif column.type in TEXTUAL:
        kind = f"{column.type}({','.join(column.members)})"
    elif column.type in BYTES:
        kind = "BYTES"
    elif column.type in INTEGERS:
        kind = f"UNSIGNED{column.type}" if column.unsigned else column.type
    elif column.type == "decimal":
        kind = f"{'UNSIGNED' if column.unsigned else ''}decimal({column.precision},{column.scale})"
    else:
        kind = f"{column.type}({column.length},{column.precision})" if column.length + column.precision else column.type
    return kind.upper() if column.nullable else f"{REQUIRED}{kind.upper()}"


def target_types(schema: TableSchema) -> TableSchema:
    """A structure whose columns compare by `target_type`."""
    return replace(schema, columns=tuple(StoredColumn.of(column, target_type(column)) for column in schema.columns))


def comparable(altered: Altered) -> Altered:
    """A change whose structures compare by `target_type`. A text that gets shorter is a type of its own."""
    before = {column.name: column for column in altered.before.columns}
    columns = [
        StoredColumn.of(column, target_type(column) + _shortened(before.get(origin.was or ""), column))
        for origin, column in zip(altered.origins, altered.after.columns, strict=True)
    ]
    return replace(altered, before=target_types(altered.before), after=replace(altered.after, columns=tuple(columns)))


def _shortened(old: Column | None, new: Column) -> str:
    texts = old is not None and new.type in _SIZED and old.type in _SIZED
    if old is None or not texts or _size(new) >= _size(old):
        return ""
    return f"({new.type},{_size(new)[1]})".upper()


def _size(column: Column) -> tuple[int, int]:
    """Longer texts are greater. Without a character set the length counts characters."""
    return max(0, _SIZED.index(column.type) - 1), characters(column) or column.length


def merged_columns_of(names: Iterable[str], structures: Sequence[TableSchema], last: Columns | None) -> Columns:
    """The columns of the target's table.

    Args:
        names: those that it has now.
        structures: of the shards, as `target_types` gives them.
        last: its columns after the last statement of this run; None: unknown.
    """
    types: dict[str, str] = {}
    for name in names:
        known = last.type(name) if last is not None else None
        own = (column for schema in structures for column in schema.columns if column.name.lower() == name.lower())
        types[name] = known or next(map(held_type, own), UNKNOWN)
    return Columns(types, last.left_out if last is not None else frozenset())


def columns_after(existing: Columns, done: Collection[Operation]) -> Columns:
    """The columns after these operations."""
    types = dict(existing.types)
    for operation in sorted(done, key=lambda one: one.verb is Verb.RETYPE):
        name = name_among(types, operation.column)
        if operation.verb is Verb.DROP and name is not None:
            del types[name]
        elif operation.verb is Verb.RENAME and (was := name_among(types, operation.was)) is not None:
            types[operation.column] = types.pop(was)
        elif operation.type:
            types[name or operation.column] = operation.type
    return Columns(types, existing.left_out)


def holds_all(operation: Operation, existing: Columns) -> bool:
    """Whether the target can execute an operation for one shard and then execute the row changes of all shards."""
    present = existing.type(operation.column) or ""
    if operation.verb is Verb.ADD:
        return not operation.type.startswith(REQUIRED)
    if operation.verb is Verb.DROP:
        return not present.startswith(REQUIRED)
    return operation.verb is Verb.RETYPE and widens(present, operation.type)


@dataclass(frozen=True, slots=True)
class ShardDdl:
    """What the target executes for a shard's statement that need not wait.

    Attributes:
        texts: the statements, with the names of the target; empty: another shard's has done it.
        retyped: columns that another shard has added with a smaller type, and that `texts` leave so; in lower case.
        done: the effect on the columns.
    """

    texts: tuple[str, ...] = ()
    retyped: frozenset[str] = frozenset()
    done: frozenset[Operation] = frozenset()


def changes_columns(altered: Altered) -> bool:
    """Whether the shards have to agree on a change: an index or a longer text needs no agreement."""
    own = Columns({column.name: held_type(column) for column in altered.before.columns})
    return bool(operations(altered, own))


def plan_shard_ddl(altered: Altered, existing: Columns, texts: Sequence[str], kept: Collection[str] = ()) -> ShardDdl:
    """The statements for a change on which the shards agree.

    Args:
        altered: as `comparable` gives it.
        texts: the shard's statements, with the name of the target.
        kept: columns, in lower case, that other shards still have: they are not dropped.
    """
    required = operations(altered, existing)
    done = frozenset(one for one in required if one.verb is not Verb.DROP or one.column not in kept)
    if not done:
        return ShardDdl()
    own = Columns({column.name: held_type(column) for column in altered.before.columns})
    if done == operations(altered, own):
        return ShardDdl(tuple(texts), done=done)
    # Another shard's statement has done a part of it: the server would refuse the whole.
    pairs = zip(altered.origins, altered.after.columns, strict=True)
    added = {column.name.lower() for origin, column in pairs if origin.was is None}
    retyped = {one.column for one in done if one.verb is Verb.RETYPE and existing.type(one.column) != UNKNOWN} & added
    parts = [part for text in texts for part in _parts(text, retyped, kept)]
    return ShardDdl(tuple(parts), frozenset(retyped), done)


def _parts(text: str, retyped: set[str], kept: Collection[str]) -> Iterator[str]:
    """The actions of an ALTER TABLE as statements, without those that drop columns to keep.

    Args:
        retyped: columns that exist with a smaller type; those that the statements give their type are removed.
    """
    split = split_alter(text)
    if split is None:
        yield text
        return
    for action in split.actions:
        name = _added(action)
        if name in retyped:
            # With the statement's own clauses: a MODIFY without DEFAULT drops the default.
            retyped.discard(name)
            yield split.of([_ADD.sub("MODIFY COLUMN ", action, count=1)])
        elif not _drops(action, kept):
            yield split.of([action])


def _added(action: str) -> str:
    """The column, in lower case, that an action adds on its own; '' if it adds none, or several in parentheses."""
    cursor = Cursor(tokenize(_ADD.sub("", action, count=1))) if _ADD.match(action) else Cursor([])
    return "" if cursor.peek() == "(" else (cursor.identifier() or "").lower()


def _drops(action: str, kept: Collection[str]) -> bool:
    """Whether an action drops a column to keep. An index or a constraint of that name is none."""
    return any(isinstance(one, Drop) and one.name.lower() in kept for one in alter_actions(tokenize(action), ""))
