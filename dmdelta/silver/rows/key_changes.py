"""Key changes with partial row images: the row with the new key gets the missing columns from the row with the old key.

Only silver has such a row completely, so the batch is split before and after each run of key changes, and every slice
is one commit. A slice is idempotent because of the row versions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from dmdelta.changelog.extraction import column_list, extracted, keys_of, tells
from dmdelta.changelog.row_keys import of_alias, same_key
from dmdelta.ddl.types.silver_types import COMMITTED_AT, VERSION, silver_type
from dmdelta.errors import UnsupportedEvent
from dmdelta.model.schema import Column, TableSchema
from dmdelta.model.spark_sql import quote

MAX_MOVES = 10_000
"""The maximum number of key changes in one batch with partial images; more would take hours of commits."""

At = tuple[int, int, int]
"""(epoch, seq, row)."""


@dataclass(frozen=True, slots=True)
class Move:
    """A key change: its ordinal in the batch (1, 2, …), its version, and its old and new key as text."""

    rank: int
    at: At
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Slice:
    """The rows in [begin, end), None for open; either all of them are key changes or none is."""

    begin: At | None
    end: At | None
    moves: bool

    @property
    def condition(self) -> str:
        """The condition (SQL) for the rows of the slice."""
        row = "struct(epoch, seq, row)"
        bounds = [(">=", self.begin), ("<", self.end)]
        return " AND ".join(f"{row} {sign} {_struct(at)}" for sign, at in bounds if at is not None) or "true"


def plan_slices(moves: Sequence[Move], rows: int) -> tuple[Slice, ...]:
    """The slices of a batch of `rows` changes, in order.

    Consecutive key changes are one slice, unless the old key of one is the new key of another.
    """
    return tuple(_slices(moves, rows))


def _slices(moves: Sequence[Move], rows: int) -> Iterator[Slice]:
    begin: At | None = None
    done = 0
    for run in _runs(moves):
        first, last = run[0], run[-1]
        if first.rank > done + 1:
            yield Slice(begin, first.at, moves=False)
        following = (*last.at[:2], last.at[2] + 1)
        yield Slice(first.at, following, moves=True)
        begin, done = following, last.rank
    if done < rows:
        yield Slice(begin, None, moves=False)


def _runs(moves: Sequence[Move]) -> Iterator[list[Move]]:
    run: list[Move] = []
    for move in sorted(moves, key=lambda move: move.rank):
        if run and (move.rank != run[-1].rank + 1 or move.old in {other.new for other in run}):
            yield run
            run = []
        run.append(move)
    if run:
        yield run


def find_moves(changes: DataFrame, schema: TableSchema) -> list[Move]:
    """The key changes among `changes`.

    Raises:
        UnsupportedEvent: there are more than MAX_MOVES.
    """
    keys = keys_of(schema)
    old, new = (
        f"to_json(struct({', '.join(f'{extracted(image, key)} AS k{n}' for n, key in enumerate(keys))}))"
        for image in ("before", "after")
    )
    ranked = changes.selectExpr("*", "row_number() OVER (ORDER BY epoch, seq, row) AS rank")
    key_changes = ranked.where("key_changed").selectExpr(
        "rank", "epoch", "seq", "row", f"{old} AS old", f"{new} AS new"
    )
    moves = [
        Move(rank, (epoch, seq, row), old, new)
        for rank, epoch, seq, row, old, new in key_changes.limit(MAX_MOVES + 1).collect()
    ]
    if len(moves) > MAX_MOVES:
        raise UnsupportedEvent(
            f"more than {MAX_MOVES} updates of {schema} change the primary key and have partial row images",
            hint="set binlog_row_image=FULL at the source for sessions that update primary keys",
        )
    return moves


def key_moves(changes: DataFrame, schema: TableSchema) -> DataFrame:
    """The key changes of a slice: old key, version, time, and the image with the new key."""
    version = "named_struct('epoch', epoch, 'seq', seq, 'row', row)"
    return changes.selectExpr(
        *(f"{extracted('before', key)} AS {old}" for key, old in zip(keys_of(schema), _old_keys(schema), strict=True)),
        f"{version} AS {VERSION}_of",
        "committed_at AS _dm_committed",
        "after AS _dm_new_image",
        "image AS _dm_image",
    )


def net_moves(moves: str, schema: TableSchema, table: str) -> str:
    """The query for the net changes of a slice, with `_dm_op`: deletes of old keys, complete rows with the new keys.

    If the table has no row with the old key, or a newer one, the key change was applied before.

    Args:
        moves: the view of `key_moves`.
        table: silver, or a view of its rows.
    """
    keys = keys_of(schema)
    old = dict(zip((key.name for key in keys), _old_keys(schema), strict=True))
    deleted = [
        f"{old.get(column.name, f'CAST(NULL AS {silver_type(column)})')} AS {quote(column.name)}"
        for column in schema.columns
    ]
    inserted = [_inserted(column) for column in schema.columns]
    on = same_key(schema, of_alias("_dm_target"), list(old.values()))
    own = f"{VERSION}_of AS {VERSION}, _dm_committed AS {COMMITTED_AT}"
    partition = ", ".join(quote(key.name) for key in keys)
    return f"""SELECT {column_list(schema)}, _dm_op FROM (
            SELECT *, row_number() OVER (PARTITION BY {partition} ORDER BY {VERSION} DESC, _dm_part DESC) AS _dm_nth
            FROM (
                SELECT {", ".join(deleted)}, {own}, 'delete' AS _dm_op, 0 AS _dm_part FROM {moves}
                UNION ALL
                SELECT {", ".join(inserted)}, {own}, 'insert' AS _dm_op, 1 AS _dm_part FROM {moves}
                JOIN {table} AS _dm_target ON {on} AND _dm_target.{VERSION} < {VERSION}_of))
        WHERE _dm_nth = 1"""


def _old_keys(schema: TableSchema) -> list[str]:
    return [f"_dm_o{index}" for index, _ in enumerate(schema.primary_key)]


def _inserted(column: Column) -> str:
    name, value = quote(column.name), extracted("_dm_new_image", column)
    return f"IF({tells('_dm_image', column)}, {value}, _dm_target.{name}) AS {name}"


def _struct(at: At) -> str:
    return f"named_struct('epoch', {at[0]}, 'seq', {at[1]}L, 'row', {at[2]})"
