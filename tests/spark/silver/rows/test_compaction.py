"""Compaction against an interpreter that applies changes one by one: many histories in one frame, distinguished by a
column of the key.
"""

import json
import random
from datetime import datetime, timezone

import pytest

from dmdelta.model.schema import Column, TableSchema
from dmdelta.silver.rows.compaction import compacted, keyed_changes, net_deletes

TABLE = TableSchema(
    "d", "many", (Column("n", "int"), Column("id", "bigint"), Column("v", "varchar", length=20)), ("n", "id")
)
HISTORIES = 250
KEYS = 5
FIELDS = "epoch INT, seq BIGINT, row INT, op STRING, key_changed BOOLEAN, before STRING, after STRING"
AT = datetime(2026, 1, 1, tzinfo=timezone.utc)


def history(rng, *, moves):
    """A table (id → value), and random changes (op, old id, new id, value) from it."""
    begin = {key: "begin" for key in range(KEYS) if rng.random() < 0.5}
    table, changes = dict(begin), []
    for number in range(rng.randrange(1, 14)):
        key, value = rng.randrange(KEYS), f"v{number}"
        free = [other for other in range(KEYS) if other not in table]
        if key not in table:
            changes.append(("insert", None, key, value))
        elif rng.random() < 0.35:
            changes.append(("delete", key, None, None))
        else:
            new = rng.choice(free) if moves and free and rng.random() < 0.4 else key
            changes.append(("update", key, new, value))
        apply(table, changes[-1])
    return begin, table, changes


def apply(table, change):
    """The interpreter: one change; impossible changes fail."""
    op, old, new, value = change
    if op in ("update", "delete"):
        del table[old]
    if op in ("update", "insert"):
        assert new not in table
        table[new] = value


def frame_of(spark, histories):
    """Bronze's rows of all histories, at interleaved positions as in a log."""
    rows = []
    for n, (_, _, changes) in enumerate(histories):
        for at, (op, old, new, value) in enumerate(changes):
            # The position is epoch, event and row together: each alone repeats.
            place = (1 + at // 8, 100 * (at % 8 // 2), at % 2)
            before = None if old is None else json.dumps({"n": n, "id": old, "v": "x"})
            after = None if new is None else json.dumps({"n": n, "id": new, "v": value})
            rows.append((*place, op, op == "update" and old != new, before, after))
    random.Random(5).shuffle(rows)
    frame = spark.createDataFrame(rows, FIELDS)
    sides = [f"parse_json({side}) AS {side}" for side in ("before", "after")]
    return frame.selectExpr(
        "epoch",
        "seq",
        "row",
        "op",
        "key_changed",
        *sides,
        "CAST(NULL AS ARRAY<STRING>) AS image",
        f"TIMESTAMP '{AT:%Y-%m-%d}' AS committed_at",
    )


def touched(changes):
    """By id: whether its first change in the log created it, and the value after the last one (None: deleted)."""
    found = {}
    for op, old, new, value in changes:
        halves = [(old, None)] if op == "delete" else [(new, value)]
        if op == "update" and old != new:
            halves.insert(0, (old, None))
        for key, left in halves:
            made = (op == "insert" or (op == "update" and old != new)) and left is not None
            found[key] = (found[key][0] if key in found else made, left)
    return found


@pytest.mark.parametrize("moves", [False, True])
def test_compacted_changes_equal_the_changes_one_by_one(spark, moves):
    """One change per key: it leads from any table to the interpreter's final table, and has the right operation."""
    rng = random.Random(11 + moves)
    histories = [history(rng, moves=moves) for _ in range(HISTORIES)]
    keyed = keyed_changes(frame_of(spark, histories), TABLE, moves=moves)
    found = compacted(keyed, TABLE).selectExpr("k0", "k1", "op", "variant_get(after, '$.v', 'string') AS v").collect()
    deleted = {tuple(row) for row in net_deletes(keyed, TABLE).collect()}
    by_history = [{} for _ in histories]
    for n, key, op, value in found:
        assert key not in by_history[n], "a key has two changes"
        by_history[n][key] = (op, value)
    for n, (begin, end, changes) in enumerate(histories):
        expected = {
            key: ("delete" if left is None else "insert" if made else "update", left)
            for key, (made, left) in touched(changes).items()
        }
        assert by_history[n] == expected, changes
        table = dict(begin)
        for key, (op, value) in by_history[n].items():
            table.pop(key, None)
            if op != "delete":
                table[key] = value
        assert table == end, changes
        assert {key for number, key in deleted if number == n} == {
            key for key, (op, _) in expected.items() if op == "delete"
        }
