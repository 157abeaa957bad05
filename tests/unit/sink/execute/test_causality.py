"""Causality: DM's relation map, conflicts, and memory bounded by the jobs in flight."""

import random
import sys
import threading

import pytest

from dmdelta.sink.execute.causality import Causality
from tests.support.causality import relations_of

TABLE = "`only_dml`.`t1`"


def keys(number):
    return [f"{number}.id.{TABLE}", f"a{number}.username.{TABLE}", f"b{number}.pass.{TABLE}"]


def test_relation_map_of_dm():
    """insert into t1 values (3,'a3','b3'), (5,'a5','b5'), (7,'a7','b7'): unique keys point to the primary key."""
    causality = Causality(16)
    for number in (3, 5, 7):
        assert causality.add(keys(number)) is not None
    assert relations_of(causality) == {
        "3.id.`only_dml`.`t1`": "3.id.`only_dml`.`t1`",
        "5.id.`only_dml`.`t1`": "5.id.`only_dml`.`t1`",
        "7.id.`only_dml`.`t1`": "7.id.`only_dml`.`t1`",
        "a3.username.`only_dml`.`t1`": "3.id.`only_dml`.`t1`",
        "a5.username.`only_dml`.`t1`": "5.id.`only_dml`.`t1`",
        "a7.username.`only_dml`.`t1`": "7.id.`only_dml`.`t1`",
        "b3.pass.`only_dml`.`t1`": "3.id.`only_dml`.`t1`",
        "b5.pass.`only_dml`.`t1`": "5.id.`only_dml`.`t1`",
        "b7.pass.`only_dml`.`t1`": "7.id.`only_dml`.`t1`",
    }
    assert causality.counts.added == 9


def test_updates_of_one_row_stay_in_order():
    """t1(id, sid): update set sid='b', 'c', 'd' where id = 1 all go to one worker, also across generations."""
    causality = Causality(16)
    first = causality.add(["1.id.`d`.`t1`"])
    causality.rotate(1)
    assert {causality.add(["1.id.`d`.`t1`"]) for _ in range(3)} == {first}
    causality.rotate(2)
    causality.purge(1)
    assert causality.add(["1.id.`d`.`t1`"]) == first


def two_workers(causality):
    """Two keys whose roots have different workers."""
    one = "k0"
    other = next(f"k{n}" for n in range(1, 1000) if causality.worker_of(f"k{n}") != causality.worker_of(one))
    return one, other


def test_keys_of_two_workers_conflict():
    """A change that brings keys of two workers together conflicts, until the map is reset."""
    causality = Causality(4)
    one, other = two_workers(causality)
    causality.add([one])
    causality.add([other])
    assert causality.add([one, other]) is None
    assert relations_of(causality) == {one: one, other: other}, "none of its keys was added"
    causality.reset()
    assert causality.add([one, other]) == causality.worker_of(one)
    assert relations_of(causality)[other] == one
    assert causality.counts.resets == 1


def test_executed_jobs_no_longer_conflict():
    """Once the jobs of a generation have been executed, their keys are removed and cannot conflict."""
    causality = Causality(4)
    one, other = two_workers(causality)
    causality.add([one])
    causality.rotate(1)
    causality.add([other])
    assert causality.add([one, other]) is None
    assert causality.purge(1) == 1
    assert causality.add([one, other]) == causality.worker_of(other)


def test_memory_stays_bounded_without_conflicts():
    """With an endless stream of new keys, only those of unexecuted jobs are kept."""
    causality = Causality(4)
    for generation in range(100):
        for number in range(50):
            assert causality.add([f"{generation}-{number}"]) is not None
        causality.rotate(generation)
        causality.purge(generation - 2)
        assert causality.counts.size <= 150
    assert len(relations_of(causality)) == causality.counts.size
    assert causality.counts.added == 5000


def test_memory_stays_bounded_with_conflicts():
    """With rows that keep conflicting, each conflict empties the map."""
    causality = Causality(4)
    for number in range(1000):
        if causality.add([f"a{number % 7}", f"b{number % 11}"]) is None:
            causality.reset()
            assert causality.add([f"a{number % 7}", f"b{number % 11}"]) is not None
        assert causality.counts.size <= 18
    assert causality.counts.resets > 0


def test_many_rows_with_one_key_each():
    """Each gets the same worker as when added individually, also if its key belongs to an older generation."""
    causality, alone = Causality(16), Causality(16)
    relation = causality.add(["1.id", "a.name"])
    assert alone.add(["1.id", "a.name"]) == relation
    causality.rotate(1)
    alone.rotate(1)
    causality.add(["2.id", "b.name"])
    alone.add(["2.id", "b.name"])
    keys = ["a.name", "b.name", *(f"{number}.id" for number in range(50))]
    assert causality.place(keys) == [alone.add([key]) for key in keys]
    assert causality.place(["a.name"]) == [relation]
    assert relations_of(causality) == relations_of(alone)
    assert causality.counts == alone.counts


@pytest.mark.parametrize("executed", range(6))
def test_a_purge_removes_exactly_the_executed_generations(executed):
    """Those of the jobs up to `executed`, as counted by `waiting`; later generations and the newest remain."""
    causality = Causality(4)
    for ordinal in (1, 2, 4):
        for number in range(ordinal):
            causality.add([f"{ordinal}.{number}"])
        causality.rotate(ordinal)
    causality.add(["newest"])
    gone = sum(ordinal for ordinal in (1, 2, 4) if ordinal <= executed)
    assert causality.waiting(executed) == gone
    assert causality.purge(executed) == gone
    assert {key.partition(".")[0] for key in relations_of(causality)} == {
        *(str(ordinal) for ordinal in (1, 2, 4) if ordinal > executed),
        "newest",
    }
    assert (causality.waiting(executed), causality.purge(executed)) == (0, 0)
    assert (causality.counts.added, causality.counts.purged, causality.counts.size) == (8, gone, 8 - gone)


def test_added_keys_are_purged_reset_or_current():
    """DM's counters: added minus purged minus reset equals the size of the map."""
    causality = Causality(4)
    for ordinal in (1, 2):
        causality.place([f"{ordinal}.{number}" for number in range(10)])
        causality.rotate(ordinal)
    causality.add(["3"])
    assert causality.purge(1) == 10
    assert causality.reset() == 11
    counts = causality.counts
    assert (counts.added, counts.purged, counts.reset, counts.resets, counts.size) == (21, 10, 11, 1, 0)
    causality.add(["4"])
    assert causality.counts.size == len(relations_of(causality)) == 1
    assert causality.purge(2) == 0


@pytest.fixture
def switching():
    """Threads take turns as often as the interpreter can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


class Race:
    """One thread adds keys, others purge what has been executed so far."""

    def __init__(self, threads=3):
        self.causality, self.executed, self.done, self.errors = Causality(4), 0, False, []
        self.threads = [threading.Thread(target=self.purge) for _ in range(threads)]

    def purge(self):
        try:
            while not self.done:
                self.causality.waiting(self.executed)
                self.causality.purge(self.executed)
        except BaseException as error:  # noqa: BLE001 - the test fails with it
            self.errors.append(error)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.done = True
        for thread in self.threads:
            thread.join()


def test_keys_in_flight_stay_while_others_purge(switching):
    """Through thousands of generations, a key of a job in flight keeps its worker, and none of them is forgotten."""
    chosen = random.Random(7)
    in_flight: dict[int, dict[str, int]] = {}
    with Race() as race:
        causality = race.causality
        for ordinal in range(1, 3001):
            ours = in_flight[ordinal] = {}
            known = {key: worker for each in in_flight.values() for key, worker in each.items()}
            repeated = chosen.sample(sorted(known), min(2, len(known)))
            keys = [f"{ordinal}.{number}" for number in range(3)]
            for key in (*repeated, *keys):
                worker = causality.add([key])
                assert worker == known.get(key, causality.worker_of(key))
                ours[key] = worker
            for key, worker in zip(keys, causality.place(keys), strict=True):
                assert worker == ours[key]
            causality.rotate(ordinal)
            if ordinal % 500 == 0:
                race.executed = ordinal
                causality.reset()
                in_flight.clear()
                continue
            race.executed = ordinal - 3
            in_flight = {number: each for number, each in in_flight.items() if number > race.executed}
            relations = relations_of(causality)
            for each in in_flight.values():
                assert {key: causality.worker_of(relations[key]) for key in each} == each
    assert race.errors == []
    causality.purge(3000)
    counts = causality.counts
    assert (counts.size, relations_of(causality)) == (0, {})
    assert counts.added == counts.purged + counts.reset
    assert counts.purged > counts.reset > 0
