"""The structures of tables that a snapshot reads are repeated until the log has passed those of the snapshot."""

from dmdelta.engine.ingest.repeated import RepeatedStructures
from dmdelta.model.position import Position

A, B = ("s", "a"), ("s", "b")


def at(offset):
    return Position(1, "binlog.000001", offset)


def test_structures_are_repeated_until_a_batch_begins_at_the_snapshots_structure():
    """While the tables are read, and in the first batch that begins at or after the position."""
    reading = {A}
    repeated = RepeatedStructures(lambda: reading)
    assert repeated.tables() == {A}
    repeated.written({A: at(50), B: at(20)})
    reading.clear()
    assert repeated.tables() == {A, B}
    repeated.landed(at(19))
    assert repeated.tables() == {A, B}
    repeated.landed(at(20))
    assert repeated.tables() == {A}
    repeated.landed(at(60))
    assert repeated.tables() == frozenset()
