"""The law of silver: any sequence of changes, any split into batches, any replay in safe mode gives the same table."""

import random
from collections import Counter
from itertools import pairwise

import pytest

from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.silver.rows.strategy import Mode
from tests.support.changelog import ITEMS, LOG, Changelog
from tests.support.lake import is_table
from tests.support.sabotage import Guard, switch_off

KEYLESS = ("d", "log")
PAIRS = TableSchema(
    "d", "pairs", (Column("a", "int"), Column("v", "varchar", length=80), Column("b", "varchar", length=9)), ("b", "a")
)
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
    """After every batch silver equals the table at the batch's end; replays by other splits give the same table."""
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
    """After every batch a table without a key equals the source's multiset of rows."""
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


def change_pairs(changelog, table, rng):
    """One random change of `table` ((a, b) → v), whose key has two columns and may change in one of them or both."""
    name = (PAIRS.schema, PAIRS.table)
    key, value = (rng.randrange(3), rng.choice("xy")), f"v{rng.randrange(1000)}"
    if key not in table:
        table[key] = value
        changelog.insert({"a": key[0], "v": value, "b": key[1]}, name)
        return
    before = {"a": key[0], "v": table.pop(key), "b": key[1]}
    if rng.random() < 0.3:
        changelog.delete(before, name)
        return
    free = [(a, b) for a in range(3) for b in "xy" if (a, b) not in table]
    new = rng.choice(free) if rng.random() < 0.5 else key
    table[new] = value
    changelog.update(before, {"a": new[0], "v": value, "b": new[1]}, name)


class Interleaved:
    """Three tables whose changes alternate in one log, and their expected rows."""

    def __init__(self, spark, lakehouse, seed):
        self.rng = random.Random(seed)
        self.changelog = Changelog(spark, lakehouse)
        self.tables = {("d", "items"): {}, ("d", "pairs"): {}, KEYLESS: Counter()}
        self.at = dict.fromkeys(self.tables, self.changelog.position)
        for schema in (ITEMS, PAIRS, LOG):
            self.changelog.tell(schema)

    def write(self, events):
        """Write a number of changes, to the tables in any order."""
        change = dict(zip(self.tables, (change_keyed, change_pairs, change_keyless), strict=True))
        for _ in range(events):
            name = self.rng.choice(list(self.tables))
            change[name](self.changelog, self.tables[name], self.rng)

    def apply(self, name):
        """Apply what has landed after the table's position; tables may have different positions."""
        end = self.changelog.land()
        self.changelog.apply(self.at[name], end, name=name)
        self.at[name] = end
        silver = self.changelog.silver(name) if is_table(self.changelog.lakehouse.silver(*name)) else []
        assert silver == self.rows(name)

    def replay(self, name, end):
        """Replay from any earlier position, split anywhere: no row becomes older in between."""
        first, cut = sorted(self.rng.sample(range(1010, end.offset, 10), 2))
        for start, stop in pairwise((first, cut, end.offset)):
            begin, until = (Position(1, "binlog.000001", offset) for offset in (start, stop))
            self.changelog.apply(begin, until, Mode.SAFE, name=name)
            assert not Counter(self.rows(name)) - Counter(self.changelog.silver(name)), f"rows of {name} are older"
        assert self.changelog.silver(name) == self.rows(name)

    def rows(self, name):
        table = self.tables[name]
        if name == KEYLESS:
            return sorted(table.elements(), key=repr)
        rows = table.items() if name == ("d", "items") else [(a, value, b) for (a, b), value in table.items()]
        return sorted(rows, key=repr)


def check_interleaved(made, batches):
    """After every batch some of the tables are applied, at the end all; then any suffix is replayed in safe mode."""
    for events in batches:
        made.write(events)
        for name in made.rng.sample(list(made.tables), made.rng.randrange(1, 3)):
            made.apply(name)
    for name, at in made.at.items():
        if at != made.changelog.position:
            made.apply(name)
    # A table without a key has no safe mode: it is not replayed.
    for name in (("d", "items"), ("d", "pairs")):
        made.replay(name, made.changelog.position)


@pytest.mark.long
def test_interleaved_tables(spark, lakehouse):
    """Each table equals the result of its own changes, whatever is between them and however they are split."""
    check_interleaved(Interleaved(spark, lakehouse, 7), (40, 50))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_many_interleaved_tables(spark, lakehouse, seed):
    """The same with more batches, some of a single change."""
    made = Interleaved(spark, lakehouse, 100 + seed)
    check_interleaved(made, [made.rng.choice((1, 5, 40, 150)) for _ in range(8)])


@pytest.mark.long
def test_an_older_change_of_a_newer_row_is_detected(spark, lakehouse, monkeypatch):
    """Sabotage: without the version guard a replay reverts rows."""
    switch_off([Guard.VERSION], monkeypatch.setattr)
    with pytest.raises(AssertionError, match="are older"):
        check_interleaved(Interleaved(spark, lakehouse, 7), (40, 50))
