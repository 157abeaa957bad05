"""Which stretches of a table's past make the table as it was."""

from itertools import pairwise

import pytest

from dmdelta.errors import QualityError
from dmdelta.model.position import Position
from dmdelta.silver.history.lineage import Beginnings, FileRows, ReplayRange, Reread, plan_past


def log(number, offset=4, epoch=2):
    return Position(epoch, f"binlog.{number:06d}", offset)


def chunk(number, epoch=1):
    return Position.of_chunk(epoch, number)


READ = Beginnings(overlap_until={2: log(7, 50)})
LOADED = [FileRows(chunk(3), 12, reads=10), FileRows(chunk(4), 9, reads=7), FileRows(log(7), 5), FileRows(log(9), 5)]


def test_a_load_and_the_log_behind_it():
    """The snapshot is a stretch of its own, the log ends at the position and not with its file."""
    read, again = ReplayRange(chunk(3), chunk(5)), ReplayRange(log(7), log(7, 50), again=True)
    assert plan_past(LOADED, log(9, 400), READ) == (read, again, ReplayRange(log(7, 50), log(9, 400)))
    assert plan_past(LOADED, log(8, 9), READ) == (read, again, ReplayRange(log(7, 50), log(8, 9)))
    assert plan_past(LOADED, log(7, 9), READ) == (read, ReplayRange(log(7), log(7, 9), again=True))


def test_a_beginning_that_nobody_remembers():
    """What may have been told before is applied as such; the first log has nothing before it."""
    assert plan_past(LOADED, log(9, 400), Beginnings())[1] == ReplayRange(log(7), log(9, 400), again=True)
    anew = [FileRows(log(7, epoch=1), 5), FileRows(log(7), 5)]
    assert [stretch.again for stretch in plan_past(anew, log(9), Beginnings())] == [False, True]


def test_long_logs_are_cut_at_files():
    """A replay that is killed need not begin again."""
    cut = plan_past(LOADED, log(9, 400), READ, stretch_rows=5)
    assert cut[-2:] == (ReplayRange(log(7, 50), log(9)), ReplayRange(log(9), log(9, 400)))


def test_stretches_follow_one_another():
    """What a stretch ends with, the next one begins with, but for what lies between two logs."""
    for rows in (1, 6, 100):
        cut = plan_past(LOADED, log(9, 400), READ, stretch_rows=rows)
        assert all(one.begin < one.end for one in cut)
        assert all(one.end <= other.begin for one, other in pairwise(cut))


def test_the_newest_reading_before_the_position_counts():
    """What the log said before an ad-hoc snapshot is left out, that of a later one is not known yet."""
    files = [FileRows(chunk(1, -2), 3, reads=1), FileRows(chunk(1, -1), 3, reads=1), *LOADED]
    rereads = Beginnings([Reread(-1, log(7, 300)), Reread(-2, log(9, 100), log(9, 150))])
    assert plan_past(files, log(9, 400), rereads) == (
        ReplayRange(chunk(1, -2), chunk(2, -2)),
        ReplayRange(log(9, 100), log(9, 150), again=True),
        ReplayRange(log(9, 150), log(9, 400)),
    )
    assert plan_past(files, log(9, 50), rereads)[0] == ReplayRange(chunk(1, -1), chunk(2, -1))
    assert plan_past(files, log(7, 200), rereads)[0] == ReplayRange(chunk(3), chunk(5))


def test_a_table_without_a_key_goes_on_exactly_where_it_was_read():
    """What the reader has seen of the log is not applied again."""
    exact = Beginnings(exact={2: log(7, 90)}, overlap_until={2: log(7, 50)})
    assert plan_past(LOADED, log(9, 400), exact)[1:] == (ReplayRange(log(7, 90), log(9, 400)),)


def test_rows_that_went_past_bronze_are_missed():
    """A table that cannot be made is not made by halves."""
    past = [FileRows(chunk(3), 2), FileRows(chunk(4), 2), FileRows(log(7), 5)]
    with pytest.raises(QualityError, match="not in bronze"):
        plan_past(past, log(9), READ)


def test_a_table_without_a_past():
    """Nothing before the position: nothing to replay."""
    assert plan_past(LOADED[2:], log(6), READ) == ()
