"""The law of restarts: whatever a crash leaves of a table's history and checkpoint, silver ends equal to the source."""

import random
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from dmdelta.bronze.progress import LandedRange
from dmdelta.checkpoint import FlushReason, Point, Points, SafeModePolicy, SourceEvidence, StoredPoints, TablePoint
from dmdelta.engine.apply.requests import RangeRequests
from dmdelta.failpoint import CrashPoint
from dmdelta.model.gtid import MysqlGtidSet
from dmdelta.model.schema import Column, TableSchema
from dmdelta.silver.apply import apply as applying
from dmdelta.silver.apply.apply import apply_table
from dmdelta.silver.schema.range_profile import table_events
from tests.spark.silver.apply.test_any_batching import change_keyed
from tests.support.changelog import ITEMS, Changelog
from tests.support.forgetting import forget_history
from tests.support.sabotage import Guard, switch_off

NAME = ITEMS.name
RANGES = 5
APPLIED = 3
"""The number of ranges in silver at the crash; the others have landed."""


class Crash:
    """A table, ranges of its log, and a checkpoint that is older than the table."""

    def __init__(self, spark, lakehouse, seed):
        self.rng, self.spark, self.table = random.Random(seed), spark, {}
        self.changelog = Changelog(spark, lakehouse)
        self.ends = [self.changelog.position]
        self.changelog.tell(ITEMS)

    def write(self, *, only_inserts):
        """One range: of any changes, or of new rows only."""
        if only_inserts:
            for key in range(100 * len(self.ends), 100 * len(self.ends) + 5):
                self.table[key] = f"new {key}"
                self.changelog.insert({"id": key, "v": self.table[key]})
        else:
            for _ in range(10):
                change_keyed(self.changelog, self.table, self.rng)
        self.ends.append(self.changelog.land())

    def apply(self, flushed):
        """The first ranges, each also by a second runner with an earlier plan; the checkpoint has `flushed` of them."""
        for number, (begin, end) in enumerate(pairwise(self.ends[: APPLIED + 1]), 1):
            result = self.changelog.apply(begin, end, batch=number)
            self.changelog.apply(begin, end, batch=number)
            if number == flushed:
                own = TablePoint(*NAME, Point(end), result.delta_version)
        point = Point(self.ends[flushed])
        return StoredPoints(1, FlushReason.INTERVAL, point, {NAME: own}, Point(self.ends[APPLIED]))

    def forget(self):
        """The log retention removes the commits of the table."""
        forget_history(self.spark, Path(self.changelog.lakehouse.root) / "silver" / "/".join(NAME))

    def restart(self, stored, *, joined):
        """A new run: the ranges after the checkpoint, split anywhere or `joined` to one."""
        evidence = SourceEvidence(self.ends[-1], stored)
        context = self.changelog.request(self.ends[0], self.ends[0], run="run-2").context
        policy = SafeModePolicy(False, timedelta(0))
        requests = RangeRequests(context, Points("shop", stored, evidence.landed), evidence, policy)
        first = self.ends.index(stored.global_point.position)
        inner = range(first + 1, RANGES)
        cuts = [] if joined else sorted(self.rng.sample(inner, self.rng.randrange(len(inner) + 1)))
        for begin, end in pairwise([first, *cuts, RANGES]):
            landed = LandedRange(end, self.ends[begin], self.ends[end], MysqlGtidSet())
            request = requests.request(
                self.spark, table_events(self.spark, context, NAME, landed.begin, landed.end), landed
            )
            if request.begin < request.end:
                requests.applied(apply_table(self.spark, request))


def play(crash, *, flushed, forgets=True, new_rows=False):
    """
    Args:
        new_rows: the ranges have new rows only, and are joined: only the mode prevents that they are appended twice.

    Raises:
        AssertionError: silver differs from the interpreter's table.
    """
    for _ in range(RANGES):
        crash.write(only_inserts=new_rows or crash.rng.random() < 0.5)
    stored = crash.apply(flushed)
    if forgets:
        crash.forget()
    crash.restart(stored, joined=new_rows)
    assert crash.changelog.silver() == sorted(crash.table.items(), key=repr)


def test_a_crash_whose_commits_are_forgotten(spark, lakehouse):
    """A repeated commit has no effect, and rows that may be in silver are replaced."""
    play(Crash(spark, lakehouse, 1), flushed=1, new_rows=True)


def test_a_turn_that_joins_less_than_the_interrupted_one(spark, lakehouse, monkeypatch):
    """New rows of its first range, which the interrupted turn merged with a later one, are not appended again."""
    name, columns = ("d", "part"), (Column("id", "int"), Column("a", "int"), Column("b", "int"))
    changelog = Changelog(spark, lakehouse)
    ends = [changelog.position]
    changelog.tell(TableSchema(*name, columns, ("id",)))
    for key in (1, 2, 3):
        changelog.insert({"id": key, "a": key, "b": key}, name)
    ends.append(changelog.land())
    changelog.update({"id": 1}, {"id": 1, "a": 9}, name, image=["id", "a"])
    changelog.update({"id": 2}, {"id": 4}, name, image=["id"])
    ends.append(changelog.land())
    interrupted = changelog.request(ends[0], ends[2], name=name, batch=2)

    def kill(point):
        if point is CrashPoint.SILVER_BETWEEN_COMMITS:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(applying, "reach", kill)
        with pytest.raises(KeyboardInterrupt):
            apply_table(spark, interrupted)
    assert sorted(row[0] for row in changelog.silver(name)) == [1, 2, 3]
    evidence = SourceEvidence(ends[2], None)
    requests = RangeRequests(interrupted.context, Points("shop", None), evidence, SafeModePolicy(False, timedelta(0)))
    for batch, (begin, end) in enumerate(pairwise(ends), 1):
        landed = LandedRange(batch, begin, end, MysqlGtidSet())
        events = table_events(spark, interrupted.context, name, begin, end)
        requests.applied(apply_table(spark, requests.request(spark, events, landed)))
        assert len({row[0] for row in changelog.silver(name)}) == len(changelog.silver(name)) == 3
    assert changelog.silver(name) == [(1, 9, 1), (3, 3, 3), (4, 2, 2)]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_any_crash(spark, lakehouse, seed):
    """Any changes, any checkpoint, with and without the table's history."""
    crash = Crash(spark, lakehouse, seed)
    play(crash, flushed=crash.rng.randint(1, APPLIED), forgets=crash.rng.random() < 0.7)


@pytest.mark.long
@pytest.mark.parametrize("guard", [Guard.EXIT_POINT, Guard.COMMITS])
def test_rows_that_are_appended_twice_are_detected(spark, lakehouse, monkeypatch, guard):
    """Sabotage: a crash counts as an orderly stop, or Delta does not recognize its earlier commits."""
    switch_off([guard], monkeypatch.setattr)
    with pytest.raises(AssertionError):
        play(Crash(spark, lakehouse, 1), flushed=1, new_rows=True)
