"""Checkpoint snapshots: the central map."""

from dmdelta.sink.execute.barriers import Snapshots


def test_ready_when_all_have_received():
    """A snapshot is ready when the last worker reaches it; the map lists the workers that have."""
    snapshots = Snapshots(2)
    snapshots.push(1, "p1")
    assert not snapshots.receive(1, 0)
    assert snapshots.received == {1: {0: True, 1: False}}
    assert snapshots.newest_ready is None
    assert snapshots.receive(1, 1)
    assert (snapshots.newest_ready.id, snapshots.newest_ready.at) == (1, "p1")


def test_newest_ready_is_flushed_and_older_are_purged():
    """The newest ready snapshot is flushed and all older ones are purged; pending ones are kept."""
    snapshots = Snapshots(2)
    for number in (1, 2, 3):
        snapshots.push(number, f"p{number}")
    for number in (1, 2):
        snapshots.receive(number, 0)
        snapshots.receive(number, 1)
    snapshots.receive(3, 0)
    assert snapshots.newest_ready.at == "p2"
    assert snapshots.newest_pushed == "p3"
    assert snapshots.purge(snapshots.newest_ready.id) == [1, 2]
    assert snapshots.received == {3: {0: True, 1: False}}


def test_late_message_of_a_purged_snapshot():
    """A worker that reaches a purged snapshot has no effect."""
    snapshots = Snapshots(2)
    snapshots.push(1, "p1")
    snapshots.purge(1)
    assert not snapshots.receive(1, 0)
    assert snapshots.newest_ready is None


def test_waiting_ends_with_a_newer_one():
    """Waiting for a snapshot also ends with a newer one, or after a timeout."""
    snapshots = Snapshots(1)
    snapshots.push(1, "p1")
    assert not snapshots.wait_for(1, 0.01)
    snapshots.push(2, "p2")
    snapshots.receive(2, 0)
    assert snapshots.wait_for(1, 0.01)
