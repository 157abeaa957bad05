"""A snapshot's chunks: positions, versions, and the commits that they share."""

import pytest

from dmdelta.engine.snapshot.plan import (
    BATCH_CHUNKS,
    BATCH_ROWS,
    PAST_SPEED,
    PlannedSnapshot,
    by_table,
    log_changed,
    plan_batches,
    shares_of,
)
from dmdelta.model.position import Position
from dmdelta.model.schema import Column, TableSchema
from dmdelta.segments import EpochBegin
from dmdelta.source.snapshot.chunk import Chunk

A, B, C = (TableSchema("d", name, (Column("id", "int"),), ("id",)) for name in "abc")
BEGIN = Position(1, "b.000001", 4)


def chunks(*sizes):
    """Chunks of (table, rows)."""
    return [Chunk(number, schema, rows=rows) for number, (schema, rows) in enumerate(sizes, 1)]


def numbers(batches):
    return [[chunk.number for chunk in batch] for batch in batches]


def test_the_positions_of_a_snapshot():
    """Its chunks are the files of a separate log that precedes the log."""
    found = PlannedSnapshot(1, BEGIN, None, tuple(chunks((A, 5), (A, 5), (B, 1))))
    assert found.begin == Position.of_chunk(1, 1)
    assert found.behind(found.chunks[1]) == Position.of_chunk(1, 3)
    assert (found.tables, found.cut_tables) == ({("d", "a"), ("d", "b")}, {A})
    assert shares_of(found.chunks) == [("d.a", 5), ("d.a", 5), ("d.b", 1)]


@pytest.mark.parametrize(("epoch", "ad_hoc"), [(1, False), (0, False), (-1, True), (-2, True)])
def test_a_snapshot_beside_the_log_has_an_epoch_below_0(epoch, ad_hoc):
    assert PlannedSnapshot(epoch, BEGIN, None, ()).is_ad_hoc is ad_hoc


def test_versions_grow_with_snapshots_and_chunks():
    """A Delta transaction version names all chunks up to one; those of another snapshot do not meet them."""
    one, two = (PlannedSnapshot(epoch, BEGIN, None, ()) for epoch in (-1, -2))
    versions = [one.version(1), one.version(2), one.version(2**32 - 1), two.version(1), two.version(2)]
    assert versions == sorted(set(versions))


@pytest.mark.parametrize(
    ("sizes", "past", "batches"),
    [
        ([], (), []),
        ([(A, 1), (B, 1), (C, 1)], (), [[1, 2, 3]]),
        ([(A, BATCH_ROWS // 2), (A, BATCH_ROWS // 2), (B, BATCH_ROWS // 2)], (), [[1, 2], [3]]),
        ([(A, BATCH_ROWS), (A, BATCH_ROWS), (B, 1)], (), [[1], [2], [3]]),
        ([(A, BATCH_ROWS // 2 + 1), (A, BATCH_ROWS // 2 + 1)], (), [[1], [2]]),
        ([(A, PAST_SPEED * BATCH_ROWS // 2), (A, PAST_SPEED * BATCH_ROWS // 2), (A, PAST_SPEED)], (A,), [[1, 2], [3]]),
        ([(A, 10 * BATCH_ROWS), (B, 1)], (), [[1], [2]]),
    ],
)
def test_small_tables_share_a_commit(sizes, past, batches):
    """A commit is limited by the number of rows; those that bypass bronze count less."""
    assert numbers(plan_batches(chunks(*sizes), past)) == batches


def test_a_commit_has_a_limited_number_of_chunks():
    found = plan_batches(chunks(*[(A, 0)] * (BATCH_CHUNKS + 1)))
    assert [len(batch) for batch in found] == [BATCH_CHUNKS, 1]


def test_adjacent_chunks_of_a_table_are_read_together():
    assert numbers(by_table(chunks((A, 1), (A, 1), (B, 1), (A, 1)))) == [[1, 2], [3], [4]]


def epoch(server, number):
    return EpochBegin(server, number, "mysql", "b.000001", 4, None)


@pytest.mark.parametrize(
    ("planned", "answering", "relayed", "changed"),
    [
        ("a", "a", None, None),
        ("a", "a", epoch("c", 1), None),
        ("a", "a", epoch("a", 2), None),
        ("a", "b", None, "planned on the server a, the address leads to b"),
        ("a", "b", epoch("a", 2), "planned on the server a, the address leads to b"),
        ("a", "a", epoch("b", 2), "planned on the server b, the address leads to a"),
        ("a", "a", epoch("b", 3), "the log continues on the server b in epoch 3"),
        ("a", "a", epoch("a", 3), "the log continues on the server a in epoch 3"),
        (None, "a", None, None),
        (None, "a", epoch("a", 2), None),
        (None, "b", epoch("a", 2), "planned on the server a, the address leads to b"),
    ],
)
def test_a_snapshot_needs_the_log_for_which_it_was_planned(planned, answering, relayed, changed):
    """Neither the server nor the relay's epoch may be another one; a plan of an earlier release has no server."""
    snapshot = PlannedSnapshot(1, Position(2, "b.000001", 4), None, (), planned)
    found = log_changed(snapshot, answering, relayed)
    assert found is None if changed is None else changed in found
