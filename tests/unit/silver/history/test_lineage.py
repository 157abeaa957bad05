"""The replay ranges that rebuild a table."""

from dataclasses import replace
from itertools import pairwise

import pytest

from dmdelta.errors import QualityError
from dmdelta.model.position import Position
from dmdelta.silver.history.lineage import Beginnings, FileRows, ReplayRange, Reread, begins_as, plan_past


def log(number, offset=4, epoch=2):
    return Position(epoch, f"binlog.{number:06d}", offset)


def chunk(number, epoch=1):
    return Position.of_chunk(epoch, number)


READ = Beginnings(overlap_until={2: log(7, 50)})
LOADED = [FileRows(chunk(3), 12, reads=10), FileRows(chunk(4), 9, reads=7), FileRows(log(7), 5), FileRows(log(9), 5)]


def test_a_snapshot_and_the_log_after_it():
    """The snapshot is a separate range; the log ends at the position, not at the end of its file."""
    read, again = ReplayRange(chunk(3), chunk(5)), ReplayRange(log(7), log(7, 50), again=True)
    assert plan_past(LOADED, log(9, 400), READ) == (read, again, ReplayRange(log(7, 50), log(9, 400)))
    assert plan_past(LOADED, log(8, 9), READ) == (read, again, ReplayRange(log(7, 50), log(8, 9)))
    assert plan_past(LOADED, log(7, 9), READ) == (read, ReplayRange(log(7), log(7, 9), again=True))


def test_an_unknown_overlap():
    """A log with an unknown overlap is replayed in safe mode, unless it is the first."""
    assert plan_past(LOADED, log(9, 400), Beginnings())[1] == ReplayRange(log(7), log(9, 400), again=True)
    epochs = [FileRows(log(7, epoch=1), 5), FileRows(log(7), 5)]
    assert [stretch.again for stretch in plan_past(epochs, log(9), Beginnings())] == [False, True]


def test_long_logs_are_split_at_files():
    """A long log is several ranges, from which an interrupted replay resumes."""
    cut = plan_past(LOADED, log(9, 400), READ, stretch_rows=5)
    assert cut[-2:] == (ReplayRange(log(7, 50), log(9)), ReplayRange(log(9), log(9, 400)))


def test_ranges_are_ordered_and_disjoint():
    """Every range starts at or after the end of the previous one."""
    for rows in (1, 6, 100):
        cut = plan_past(LOADED, log(9, 400), READ, stretch_rows=rows)
        assert all(one.begin < one.end for one in cut)
        assert all(one.end <= other.begin for one, other in pairwise(cut))


def test_the_newest_snapshot_before_the_position_is_used():
    """The log before an ad-hoc snapshot is not replayed, and later snapshots are ignored."""
    files = [FileRows(chunk(1, -2), 3, reads=1), FileRows(chunk(1, -1), 3, reads=1), *LOADED]
    rereads = Beginnings([Reread(-1, log(7, 300)), Reread(-2, log(9, 100), log(9, 150))])
    assert plan_past(files, log(9, 400), rereads) == (
        ReplayRange(chunk(1, -2), chunk(2, -2)),
        ReplayRange(log(9, 100), log(9, 150), again=True),
        ReplayRange(log(9, 150), log(9, 400)),
    )
    assert plan_past(files, log(9, 50), rereads)[0] == ReplayRange(chunk(1, -1), chunk(2, -1))
    assert plan_past(files, log(7, 200), rereads)[0] == ReplayRange(chunk(3), chunk(5))


def test_a_table_without_a_key_resumes_exactly_at_its_snapshot():
    """The log before the consistent read of a table is not replayed."""
    exact = Beginnings(exact={2: log(7, 90)}, overlap_until={2: log(7, 50)})
    assert plan_past(LOADED, log(9, 400), exact)[1:] == (ReplayRange(log(7, 90), log(9, 400)),)


def test_a_snapshot_that_bypassed_bronze_is_an_error():
    """A table whose snapshot rows are not in bronze cannot be rebuilt."""
    past = [FileRows(chunk(3), 2), FileRows(chunk(4), 2), FileRows(log(7), 5)]
    with pytest.raises(QualityError, match="bronze does not contain the rows of the snapshot"):
        plan_past(past, log(9), READ)


def test_a_table_without_history():
    """Without events before the position there are no ranges."""
    assert plan_past(LOADED[2:], log(6), READ) == ()
    assert plan_past(LOADED[2:], log(7), Beginnings(exact={2: log(6)})) == ()


@pytest.mark.parametrize(
    ("begun", "to", "begin"),
    [
        (READ, log(9, 400), chunk(5)),
        (Beginnings(exact={2: log(7, 90)}), log(9, 400), log(7, 90)),
        (Beginnings(exact={2: log(7, 90)}), log(2, 9, 3), chunk(5)),
    ],
)
def test_the_log_after_a_snapshot_is_replayed_without_rows_of_the_table(begun, to, begin):
    """DROP DATABASE does not name its tables: it is in the log, though no event there is the table's."""
    read = (ReplayRange(chunk(3), chunk(4)), ReplayRange(chunk(4), chunk(5)))
    assert plan_past(LOADED[:2], to, begun, stretch_rows=5) == (*read, ReplayRange(begin, to, again=True))


@pytest.mark.parametrize("to", [log(9, 400), log(2, 9, 3)])
def test_the_log_after_an_ad_hoc_snapshot_is_replayed_without_rows_of_the_table(to):
    """From where the log continues after the snapshot, into a later epoch as well."""
    files, begun = [FileRows(chunk(1, -1), 3, reads=1), *LOADED[:2]], Beginnings([Reread(-1, log(7, 300))])
    assert plan_past(files, to, begun) == (
        ReplayRange(chunk(1, -1), chunk(2, -1)),
        ReplayRange(log(7, 300), to, again=True),
    )


@pytest.mark.parametrize(
    ("rereads", "table", "alike"),
    [
        ([], "t", True),
        ([Reread(-1, log(9, 100), log(9, 150))], "t", False),
        ([], "other", False),
    ],
)
def test_a_replay_continues_only_a_history_that_begins_alike(rereads, table, alike):
    """A snapshot of the table, or rows of another table, start it anew; more log does not."""
    files = [FileRows(chunk(1, -1), 3, reads=1), *LOADED] if rereads else LOADED
    before = [replace(part, table=("shop", "t")) for part in plan_past(LOADED, log(9, 50), READ)]
    later = plan_past(files, log(9, 400), replace(READ, rereads=rereads))
    assert begins_as([replace(part, table=("shop", table)) for part in later], before) is alike
