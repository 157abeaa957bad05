"""The query of a view that reads a table live, as plain SQL: a version of silver, and the changes in bronze after it.

Nothing plans the query when a view is read, so it names what a live read looks up: the version of silver, and the
position of its rows. That pair stays correct while silver advances: whichever snapshot of bronze a reader gets, it has
everything that the version contains. The changes end before the transaction of the first event whose effect the query
cannot know: a statement, another structure, the commit of an XA transaction, a row of a snapshot, a partial row image.
From there on the view stays at that position, until it is replaced by one of a later version.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from dmdelta.changelog.extraction import extracted, keys_of
from dmdelta.changelog.ranges import of_source, of_table
from dmdelta.changelog.row_keys import of_alias, same_key
from dmdelta.ddl.types.silver_types import COMMITTED_AT, VERSION, silver_columns
from dmdelta.model.change import Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.model.spark_sql import literal, quote
from dmdelta.sharding.operations import plain_type
from dmdelta.silver.rows.compaction import change_struct, key_names

_OPS = (Op.INSERT, Op.UPDATE, Op.DELETE)
_LAST = (1 << 63) - 1
_OWN = {VERSION: "named_struct('epoch', epoch, 'seq', seq, 'row', row)", COMMITTED_AT: "committed_at"}
EXPIRED = "the view has expired: run the dmdelta task, which replaces it"
"""The error of a view that is read after its `until`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewPart:
    """The rows of one source table in a view.

    Attributes:
        silver, bronze: SQL identifiers.
        version: of silver.
        own_rows: the condition (SQL) for the source table's rows in silver; '' for all rows.
        name: of the source table.
        begin: the position of the source table's rows in the version.
        schema: the source table's structure in silver, with a primary key.
        columns: the names and types of silver's columns, in order.
        recorded: the structure at `begin` as bronze records it; None if it was never recorded like this.
        ignored: the ops that filters exclude.
    """

    silver: str
    bronze: str
    version: int
    own_rows: str
    source_id: str
    name: TableName
    begin: Position
    schema: TableSchema
    columns: Mapping[str, str]
    recorded: str | None
    ignored: Sequence[Op] = ()


def view_query(parts: Sequence[ViewPart], until: datetime) -> str:
    """The query of a view: the rows of all its source tables.

    Args:
        until: in UTC; the view fails from then on, before maintenance removes the rows that it reads.
    """
    return "\nUNION ALL\n".join(f"{_kept(part, until)}\nUNION ALL\n{_written(part)}" for part in parts)


def _kept(part: ViewPart, until: datetime) -> str:
    """The rows of silver with keys that no change has."""
    valid = f"current_timestamp() < TIMESTAMP'{until:%Y-%m-%d %H:%M:%S}Z'"
    conditions = [f"CASE WHEN {valid} THEN true ELSE CAST(raise_error({literal(EXPIRED)}) AS BOOLEAN) END"]
    conditions += [part.own_rows] if part.own_rows else []
    on = same_key(part.schema, of_alias("_dm_target"), [f"_dm_source.{name}" for name in key_names(part.schema)])
    columns = ", ".join(f"_dm_target.{quote(name)}" for name in part.columns)
    return (
        # The keys of the changes are sent to every task, so that silver's rows are not shuffled.
        f"SELECT /*+ BROADCAST(_dm_source) */ {columns}\n"
        f"FROM (SELECT * FROM {part.silver} VERSION AS OF {part.version}\n"
        f"  WHERE {' AND '.join(conditions)}) AS _dm_target\n"
        f"LEFT ANTI JOIN ({_keys(part)}) AS _dm_source ON {on}"
    )


def _written(part: ViewPart) -> str:
    """The rows that the last changes of the keys leave."""
    newest = f"PARTITION BY {', '.join(key_names(part.schema))} ORDER BY epoch DESC, seq DESC, row DESC, part DESC"
    return (
        f"SELECT {', '.join(_values(part))} FROM (SELECT *, row_number() OVER ({newest}) AS age\n"
        f"  FROM ({_changes(part)})) WHERE age = 1 AND op <> 'delete'"
    )


def _keys(part: ViewPart) -> str:
    """The keys that changes affect: of a key change both."""
    new, old = _key_values(part, "IF(op = 'delete', before, after)"), _key_values(part, "before")
    both = f"IF(key_changed, array({_struct(part, old)}, {_struct(part, new)}), array({_struct(part, new)}))"
    return f"SELECT inline({both}) FROM {part.bronze}\n  WHERE {_tail(part)}"


def _changes(part: ViewPart) -> str:
    """The changes by the key that they affect, as `keyed_changes` has them."""
    names = key_names(part.schema)
    old_names = [f"old_{name}" for name in names]
    new = zip(_key_values(part, "IF(op = 'delete', before, after)"), names, strict=True)
    old = zip(_key_values(part, "before"), old_names, strict=True)
    keys = ", ".join(f"{value} AS {name}" for value, name in (*new, *old))
    halves = f"array({change_struct(old_names, 'delete', 0)}, {change_struct(names, 'insert', 1)})"
    rest = "epoch, seq, row, committed_at"
    return (
        f"SELECT inline(IF(key_changed, {halves}, array({change_struct(names)}))), {rest}\n"
        f"  FROM (SELECT {keys}, op, key_changed, after, {rest} FROM {part.bronze}\n  WHERE {_tail(part)})"
    )


def _values(part: ViewPart) -> list[str]:
    """The values of silver's columns, from a change."""
    columns = {column.name: column for column in part.schema.columns}
    keys = dict(zip(part.schema.primary_key, key_names(part.schema), strict=True))
    kinds = silver_columns(part.schema)
    values = []
    for name, kind in part.columns.items():
        if name in _OWN:
            value = _OWN[name]
        elif name in columns:
            value = keys.get(name) or extracted("after", columns[name], strict=False)
            value = value if plain_type(kinds[name]) == plain_type(kind) else f"CAST({value} AS {kind})"
        else:
            value = f"CAST(NULL AS {kind})"
        values.append(f"{value} AS {quote(name)}")
    return values


def _tail(part: ViewPart) -> str:
    """The condition for the table's changes that the view contains."""
    ops = ", ".join(literal(op.value) for op in _OPS if op not in part.ignored)
    changes = f"op IN ({ops or 'NULL'}) AND xid IS NULL"
    return f"{_since(part)} AND {of_table(*part.name)} AND {changes} AND seq < {_end(part)}"


def _end(part: ViewPart) -> str:
    """The `seq` where the transaction of the first unknown event begins; the event's own without a GTID."""
    first = f"(SELECT min(struct(seq, gtid)) FROM {part.bronze} WHERE {_unknown(part)})"
    same = f"(seq = {first}.seq OR gtid = {first}.gtid)"
    return f"coalesce((SELECT min(seq) FROM {part.bronze} WHERE {_since(part)} AND {same}), {_LAST})"


def _unknown(part: ViewPart) -> str:
    """The condition for events whose effect on the table the query does not know."""
    schema, changes = part.name[0], ", ".join(literal(op.value) for op in _OPS)
    known = f" AND NOT (op = '{Op.SCHEMA.value}' AND ddl = {literal(part.recorded)})" if part.recorded else ""
    own = f"{of_table(*part.name)} AND (image IS NOT NULL OR (op NOT IN ({changes}){known}))"
    of_database = f"op = '{Op.DDL.value}' AND table_name IS NULL AND schema_name = {literal(schema)}"
    return f"{_since(part)} AND (({own}) OR ({of_database}) OR op = '{Op.XA_COMMIT.value}')"


def _since(part: ViewPart) -> str:
    """The condition for the source's log from `begin` to the end of its epoch: a new epoch may repeat changes."""
    return f"{of_source(part.source_id)} AND epoch = {part.begin.epoch} AND seq >= {part.begin.seq}"


def _key_values(part: ViewPart, image: str) -> list[str]:
    return [extracted(image, key, strict=False) for key in keys_of(part.schema)]


def _struct(part: ViewPart, values: Sequence[str]) -> str:
    pairs = zip(key_names(part.schema), values, strict=True)
    return f"named_struct({', '.join(f'{literal(name)}, {value}' for name, value in pairs)})"
