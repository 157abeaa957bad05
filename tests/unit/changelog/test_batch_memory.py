"""Landed rows in memory: exactly those of a range, or nothing."""

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmdelta.changelog import batch_memory
from dmdelta.changelog.batch_memory import BatchMemory
from dmdelta.changelog.range_counts import range_counts
from dmdelta.failpoint import CrashPoint
from dmdelta.model.position import Position

NAMES = [("d", "a"), ("d", "b"), ("e", "a"), ("d", None), (None, None)]
ROOM = 1 << 20


def at(offset, number=1, epoch=1):
    return Position(epoch, f"binlog.{number:06d}", offset)


def rows_of(rows):
    """A table of (offset, name)."""
    columns = {
        "epoch": pa.array([1] * len(rows), pa.int32()),
        "seq": pa.array([at(offset).seq for offset, _ in rows], pa.int64()),
        "schema_name": pa.array([name[0] for _, name in rows], pa.string()),
        "table_name": pa.array([name[1] for _, name in rows], pa.string()),
    }
    return pa.table(columns)


def found(table):
    return [
        (seq - at(0).seq, (schema, name))
        for seq, schema, name in zip(
            *(table[column].to_pylist() for column in ("seq", "schema_name", "table_name")), strict=True
        )
    ]


@given(st.data())
def test_any_range_of_any_batches(data):
    """The rows of one or all tables, in log order for each table; None unless batches cover the range without a gap."""
    log = sorted(
        data.draw(st.lists(st.tuples(st.integers(4, 99), st.sampled_from(NAMES)), max_size=30)), key=lambda r: r[0]
    )
    cuts = sorted({4, 100, *data.draw(st.sets(st.integers(5, 99), max_size=4))})
    missing = data.draw(st.sets(st.sampled_from(cuts[:-1]), max_size=1))
    memory = BatchMemory(ROOM)
    for begin, end in pairwise(cuts):
        if begin not in missing:
            memory.add(at(begin), at(end), rows_of([row for row in log if begin <= row[0] < end]))
    low, high = sorted(data.draw(st.sets(st.integers(4, 100), min_size=2, max_size=2)))
    name = data.draw(st.none() | st.sampled_from(NAMES[:3]))
    gaps = [(begin, end) for begin, end in pairwise(cuts) if begin in missing]
    covered = not any(begin < high and low < end for begin, end in gaps)
    rows = memory.rows(at(low), at(high), name)
    assert (rows is not None) == covered
    if rows is not None:
        wanted = [row for row in log if low <= row[0] < high and (name in (None, row[1]) or row[1][1] is None)]
        for each in NAMES:
            assert [row for row in found(rows) if row[1] == each] == [row for row in wanted if row[1] == each]


def test_a_batch_in_the_next_file_continues_the_one_before():
    """In memory it begins where the previous one ends; a batch that was not kept leaves a gap."""
    memory = BatchMemory(ROOM)
    memory.add(at(4), at(50), rows_of([(10, NAMES[0])]))
    memory.add(at(50), at(90, number=2), rows_of([]))
    assert memory.rows(at(4), at(90, number=2)) is not None
    assert memory.rows(at(4, number=2), at(90, number=2)).num_rows == 0
    memory.add(at(95, number=2), at(99, number=2), rows_of([]))
    assert memory.rows(at(4, number=2), at(99, number=2)) is None
    assert memory.rows(at(95, number=2), at(99, number=2)) is not None
    assert memory.rows(at(4), at(50)) is not None


def test_other_epochs_are_not_covered():
    """A snapshot's rows are a separate log."""
    memory = BatchMemory(ROOM)
    memory.add(at(4), at(50), rows_of([(10, NAMES[0])]))
    assert memory.rows(at(4, epoch=0), at(50)) is None
    assert memory.rows(at(4, epoch=2), at(50, epoch=2)) is None


def test_the_oldest_are_evicted(monkeypatch):
    """As many as needed are evicted; rows already read stay valid. A batch larger than the capacity is not kept."""
    evicted = []
    monkeypatch.setattr(batch_memory, "reach", evicted.append)
    one = rows_of([(offset, NAMES[0]) for offset in range(10, 40)])
    (alone := BatchMemory(ROOM)).add(at(4), at(50), one)
    memory = BatchMemory(2 * alone.size)
    memory.add(at(4), at(50), one)
    held = memory.rows(at(4), at(50), NAMES[0])
    memory.add(at(50), at(60), one)
    assert not evicted
    memory.add(at(60), at(70), one)
    assert evicted == [CrashPoint.MEMORY_EVICTED]
    assert (memory.rows(at(4), at(50)), held.num_rows) == (None, 30)
    assert memory.rows(at(50), at(70)) is not None
    assert memory.size == 2 * alone.size
    memory.add(at(70), at(80), rows_of([(offset, NAMES[0]) for offset in range(10, 100)]))
    assert memory.size == 0


def test_applied_batches_are_released():
    """Batches are released up to a position that every table has reached."""
    memory = BatchMemory(ROOM)
    for begin in (4, 50, 60):
        memory.add(at(begin), at({4: 50, 50: 60, 60: 70}[begin]), rows_of([(begin, NAMES[0])]))
    memory.release(at(59))
    assert memory.rows(at(4), at(50)) is None
    assert memory.rows(at(50), at(70)) is not None
    memory.release(at(70))
    assert memory.size == 0


def test_without_capacity_nothing_is_kept():
    memory = BatchMemory()
    memory.add(at(4), at(50), rows_of([(10, NAMES[0])]))
    assert (memory.rows(at(4), at(50)), memory.size) == (None, 0)


@pytest.mark.parametrize("xid", ["x", None])
def test_xa_is_counted_in_bronze(xid):
    """The effect of its rows is elsewhere in the log."""
    columns = {
        "schema_name": ["d"],
        "table_name": ["a"],
        "op": ["insert"],
        "epoch": [1],
        "binlog_file": ["f.1"],
        "binlog_pos": [7],
        "seq": [7],
        "row": [0],
        "ddl": pa.array([None], pa.string()),
        "xid": pa.array([xid], pa.string()),
        "image": pa.array([None], pa.list_(pa.string())),
        "key_changed": pa.array([None], pa.bool_()),
        "before": pa.nulls(1),
        "after": pa.nulls(1),
    }
    counts = range_counts(pa.table(columns))
    assert (counts is None) == (xid is not None)
    assert range_counts(None) is None
