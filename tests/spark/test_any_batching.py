"""The law of silver: any sequence of changes, any split into batches, any replay in safe mode gives the same table."""

import random
from collections import Counter
from itertools import pairwise

import pytest

from dmdelta.model.position import Position
from dmdelta.silver.plan import Mode
from tests.spark.changelog import ITEMS, LOG, Changelog

KEYLESS = ("d", "log")
EVENTS = 60
KEYS = 7


def change_keyed(changelog, table, rng):
    """One random change of `table` (id → v), written to the log."""
    value = f"v{rng.randrange(1000)}"
    key = rng.randrange(KEYS)
    if key not in table:
        table[key] = value
        changelog.insert({"id": key, "v": value})
        return
    before = {"id": key, "v": table.pop(key)}
    if rng.random() < 0.3:
        changelog.delete(before)
        return
    free = [other for other in range(KEYS) if other not in table and other != key]
    new = rng.choice(free) if free and rng.random() < 0.4 else key
    table[new] = value
    changelog.update(before, {"id": new, "v": value})


def change_keyless(changelog, table, rng):
    """One random change of `table` (a multiset), written to the log."""
    row = {"a": rng.randrange(3), "b": rng.choice([None, "x"])}
    present = sorted(table.elements(), key=repr)
    if not present or rng.random() < 0.5:
        table[tuple(row.values())] += 1
        changelog.insert(row, KEYLESS)
        return
    old = rng.choice(present)
    table[old] -= 1
    before = {"a": old[0], "b": old[1]}
    if rng.random() < 0.5:
        changelog.delete(before, KEYLESS)
        return
    table[tuple(row.values())] += 1
    changelog.update(before, row, KEYLESS)


@pytest.mark.parametrize("seed", [1])
def test_keyed(spark, lakehouse, seed):
    """After every batch silver is the table at the batch's end; replays by other splits end in the same table."""
    rng = random.Random(seed)
    changelog, table = Changelog(spark, lakehouse), {}
    begin = changelog.position
    changelog.tell(ITEMS)
    cuts = sorted(rng.sample(range(1, EVENTS), 2))
    for number in range(EVENTS):
        change_keyed(changelog, table, rng)
        if number in cuts or number == EVENTS - 1:
            end = changelog.land()
            changelog.apply(begin, end)
            assert changelog.silver() == sorted(table.items(), key=repr), f"seed {seed}"
            begin = end
    last = changelog.position.offset
    replayed = [1000, *sorted(rng.sample(range(1010, last, 10), 1)), last]
    for start, stop in pairwise(replayed):
        changelog.apply(Position(1, "binlog.000001", start), Position(1, "binlog.000001", stop), Mode.SAFE)
    assert changelog.silver() == sorted(table.items(), key=repr), f"seed {seed}"


def test_keyless(spark, lakehouse):
    """A table without a key is the same multiset of rows as the source's after every batch."""
    rng = random.Random(3)
    changelog, table = Changelog(spark, lakehouse), Counter()
    begin = changelog.position
    changelog.tell(LOG)
    for number in range(EVENTS):
        change_keyless(changelog, table, rng)
        if number in (15, EVENTS - 1):
            end = changelog.land()
            changelog.apply(begin, end, name=KEYLESS)
            assert changelog.silver(KEYLESS) == sorted(table.elements(), key=repr)
            begin = end
