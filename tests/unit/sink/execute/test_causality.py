"""Causality: DM's relation map, conflicts, and memory bounded by the jobs in flight."""

from dmdelta.sink.execute.causality import Causality

TABLE = "`only_dml`.`t1`"


def keys(number):
    return [f"{number}.id.{TABLE}", f"a{number}.username.{TABLE}", f"b{number}.pass.{TABLE}"]


def test_relation_map_of_dm():
    """insert into t1 values (3,'a3','b3'), (5,'a5','b5'), (7,'a7','b7'): unique keys point to the primary key."""
    causality = Causality(16)
    for number in (3, 5, 7):
        assert causality.add(keys(number)) is not None
    assert causality.relations == {
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
    assert causality.relations == {one: one, other: other}, "none of its keys was added"
    causality.reset()
    assert causality.add([one, other]) == causality.worker_of(one)
    assert causality.relations[other] == one
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
    assert len(causality.relations) == causality.counts.size
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
    """Each gets the same worker as when added alone, also if its key belongs to an older generation."""
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
    assert causality.relations == alone.relations
    assert causality.counts == alone.counts
