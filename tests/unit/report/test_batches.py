"""Facts derived from commits."""

from datetime import datetime, timedelta, timezone

from dmdelta.lakehouse.history import CommitTag, TimedCommit
from dmdelta.model.position import Position
from dmdelta.report.batches import LandedRows, batches_of, paces_of, safe_ranges_of
from dmdelta.report.time_buckets import stretches_of

T0 = datetime(2026, 11, 22, 14, 0, 0, tzinfo=timezone.utc)
FILE = "binlog.000003"


def at(offset):
    return Position(1, FILE, offset)


def later(seconds):
    return T0 + timedelta(seconds=seconds)


def commit(seconds, begin, end, source="one", safe_until=None):
    return TimedCommit(
        later(seconds),
        CommitTag(
            app="app", version=1, task="t", source=source, run="r", begin=at(begin), end=at(end), safe_until=safe_until
        ),
    )


def rows(seconds, last, changed, source="one"):
    return LandedRows(source, later(seconds), at(last).key, later(changed))


def test_a_batch_ends_with_its_last_silver_commit():
    """Landing ends with the bronze commit, applying starts there; lag is the age of the newest change."""
    landed, bronze = [rows(8, 90, 5), rows(18, 199, 16)], [commit(20, 100, 200), commit(10, 4, 100)]
    silver = [commit(12, 4, 100), commit(13, 4, 100), commit(21, 100, 200)]
    first, second = batches_of(bronze, landed, silver)
    assert (first.land_seconds, first.apply_seconds) == (2, 3)
    assert (first.bronze_lag, first.silver_lag) == (5, 8)
    assert (second.land_seconds, second.apply_seconds, second.silver_lag) == (2, 1, 5)


def test_batches_applied_as_one_range_end_together():
    """Each of them ends when the range is applied."""
    silver = [commit(30, 4, 200)]
    found = batches_of([commit(10, 4, 100), commit(20, 100, 200)], [rows(8, 90, 5), rows(18, 199, 16)], silver)
    assert [batch.apply_seconds for batch in found] == [20, 10]


def test_a_table_created_by_a_batch_starts_within_it():
    """The batch still ends with its commit."""
    (found,) = batches_of([commit(10, 4, 100)], [rows(8, 90, 5)], [commit(13, 60, 100)])
    assert found.apply_seconds == 3


def test_a_batch_without_silver_commits_has_no_end():
    """Whether or not a later range has commits; commits of other sources do not count."""
    silver = [commit(40, 200, 300), commit(12, 4, 100, source="two")]
    found = batches_of([commit(10, 4, 100), commit(20, 100, 200)], [rows(8, 90, 5)], silver)
    assert [batch.applied for batch in found] == [None, None]
    assert [batch.began for batch in found] == [later(8), None]


def test_a_time_bucket_shows_its_worst_batch():
    """The slowest batch, with both of its durations, and the maximum age."""
    bronze = [commit(10, 4, 100), commit(20, 100, 200), commit(30, 200, 300)]
    landed = [rows(9, 90, 1), rows(11, 199, 19), rows(29, 299, 29)]
    silver = [commit(19, 4, 100), commit(21, 100, 200), commit(31, 200, 300)]
    (pace,) = paces_of(batches_of(bronze, landed, silver), stretches_of(T0, later(3600)))
    assert (pace.at, pace.batches) == (T0, 3)
    assert (pace.land_seconds, pace.apply_seconds) in ((1, 9), (9, 1))
    assert (pace.bronze_lag, pace.silver_lag) == (9, 18)


def test_differing_clocks_give_no_negative_age():
    """A change from the future is 0 seconds old."""
    (batch,) = batches_of([commit(10, 4, 100)], [rows(8, 90, 50)], [])
    assert batch.bronze_lag == 0


def test_a_range_in_safe_mode_is_listed_once():
    """It starts with its first commit and is over once the source is past its end."""
    named = [commit(10, 4, 100, safe_until=at(250)), commit(20, 100, 200, safe_until=at(250))]
    (on,) = safe_ranges_of(named)
    assert (on.begin, on.end, on.first, on.last, on.over) == (str(at(4)), str(at(250)), later(10), later(20), False)
    (over,) = safe_ranges_of([commit(30, 200, 300), *named])
    assert over.over
    assert safe_ranges_of([commit(30, 200, 300)]) == ()
