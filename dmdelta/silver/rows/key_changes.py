"""Key changes in images with only some of the columns: the row under the new key takes the others from the old one.

Such a row is not in the log as a whole, only in silver; so the batch is cut before and after each run of key changes,
and every slice is a commit. A slice may be repeated: versions guard it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from dmdelta.changelog.extraction import column_list, extracted, keys_of, tells
from dmdelta.ddl.types.silver_types import COMMITTED_AT, VERSION, silver_type
from dmdelta.errors import UnsupportedEvent
from dmdelta.model.schema import Column, TableSchema
from dmdelta.model.spark_sql import quote

MAX_MOVES = 10_000
"""Key changes in one batch that are cut apart; more would take hours of commits."""

At = tuple[int, int, int]
"""(epoch, seq, row)."""


@dataclass(frozen=True, slots=True)
class Move:
    """A key change: which row of the batch it is (1, 2, …), where it is, and its keys as text."""

    rank: int
    at: At
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows from `begin` up to before `end` (None: open); all of them key changes, or none."""

    begin: At | None
    end: At | None
    moves: bool

    @property
    def condition(self) -> str:
        """The slice in SQL."""
        row = "struct(epoch, seq, row)"
        bounds = [(">=", self.begin), ("<", self.end)]
        return " AND ".join(f"{row} {sign} {_struct(at)}" for sign, at in bounds if at is not None) or "true"


def plan_slices(moves: Sequence[Move], rows: int) -> tuple[Slice, ...]:
    """The slices of a batch of `rows` changes in their order.

    Key changes one after the other are one slice, unless one takes up a key that another of them has just given.
    """
    return tuple(_slices(moves, rows))


def _slices(moves: Sequence[Move], rows: int) -> Iterator[Slice]:
    begin: At | None = None
    done = 0
    for run in _runs(moves):
        first, last = run[0], run[-1]
        if first.rank > done + 1:
            yield Slice(begin, first.at, moves=False)
        behind = (*last.at[:2], last.at[2] + 1)
        yield Slice(first.at, behind, moves=True)
        begin, done = behind, last.rank
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
    found = ranked.where("key_changed").selectExpr("rank", "epoch", "seq", "row", f"{old} AS old", f"{new} AS new")
    moves = [
        Move(rank, (epoch, seq, row), old, new)
        for rank, epoch, seq, row, old, new in found.limit(MAX_MOVES + 1).collect()
    ]
    if len(moves) > MAX_MOVES:
        raise UnsupportedEvent(
            f"over {MAX_MOVES} updates of {schema} change the key and log only some of the columns",
            hint="set binlog_row_image=FULL at the source for sessions that change keys",
        )
    return moves


def moved_rows(changes: DataFrame, schema: TableSchema, table: str) -> DataFrame:
    """What a slice of key changes leaves: old keys as deletes, rows under their new keys whole, with `_dm_op`.

    A row that silver does not have under its old key, or has newer, has been moved before.
    """
    keys = keys_of(schema)
    version = "named_struct('epoch', epoch, 'seq', seq, 'row', row)"
    changes.selectExpr(
        *(f"{extracted('before', key)} AS _dm_o{index}" for index, key in enumerate(keys)),
        f"{version} AS {VERSION}_of",
        "committed_at AS _dm_committed",
        "after AS _dm_new_image",
        "image AS _dm_told",
    ).createOrReplaceTempView("dmdelta_moves")
    old = {key.name: f"_dm_o{index}" for index, key in enumerate(keys)}
    gone = [
        f"{old.get(column.name, f'CAST(NULL AS {silver_type(column)})')} AS {quote(column.name)}"
        for column in schema.columns
    ]
    arrived = [_arrived(column) for column in schema.columns]
    on = " AND ".join(f"_dm_target.{quote(name)} = {alias}" for name, alias in old.items())
    own = f"{VERSION}_of AS {VERSION}, _dm_committed AS {COMMITTED_AT}"
    partition = ", ".join(quote(key.name) for key in keys)
    return changes.sparkSession.sql(
        f"""SELECT {column_list(schema)}, _dm_op FROM (
            SELECT *, row_number() OVER (PARTITION BY {partition} ORDER BY {VERSION} DESC, _dm_part DESC) AS _dm_nth
            FROM (
                SELECT {", ".join(gone)}, {own}, 'delete' AS _dm_op, 0 AS _dm_part FROM dmdelta_moves
                UNION ALL
                SELECT {", ".join(arrived)}, {own}, 'insert' AS _dm_op, 1 AS _dm_part FROM dmdelta_moves
                JOIN {table} AS _dm_target ON {on} AND _dm_target.{VERSION} < {VERSION}_of))
        WHERE _dm_nth = 1"""
    )


def _arrived(column: Column) -> str:
    name, value = quote(column.name), extracted("_dm_new_image", column)
    return f"IF({tells('_dm_told', column)}, {value}, _dm_target.{name}) AS {name}"


def _struct(at: At) -> str:
    return f"named_struct('epoch', {at[0]}, 'seq', {at[1]}L, 'row', {at[2]})"
