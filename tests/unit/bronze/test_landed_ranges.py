"""A reader finds the ranges that it has not processed, also if the commits of their batches have expired."""

from datetime import datetime, timezone

import pytest

from dmdelta.bronze import landed_ranges
from dmdelta.bronze.landed_ranges import LaterLogs, landed_batches, ranges_after
from dmdelta.bronze.progress import LandedRange, landing_app
from dmdelta.changelog.context import SourceContext
from dmdelta.lakehouse.access.commit_tag import CommitTag, OwnCommit
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.model.gtid import parse_gtid_set
from dmdelta.model.position import FAR, Position
from dmdelta.rules import NO_RULES

SOURCE = SourceContext(Lakehouse(root="/lake"), "task", "s1", "run", "mysql", NO_RULES)
APP = landing_app("task", "s1")
NOW = datetime(2026, 11, 22, tzinfo=timezone.utc)
SEEN = "00000000-0000-0000-0000-000000000001:1-9"


def at(offset, epoch=2):
    return Position(epoch, "binlog.000003", offset)


def tag(version, begin, end, epoch=2, *, again=False, safe_until=None, gtid_set=""):
    begin, end = at(begin, epoch), at(end, epoch)
    return CommitTag(APP, version, "task", "s1", "run", begin, end, gtid_set, safe_until, again=again)


def landed(batch, begin, end, safe_until=None, gtid_set=""):
    return LandedRange(batch, begin, end, parse_gtid_set(gtid_set, "mysql"), safe_until)


@pytest.fixture
def history(monkeypatch):
    """Sets bronze's tags, the newest first, the marks of epochs, and the source's first row."""

    def use(tags, marks=(), first=None):
        commits = [OwnCommit(len(tags) - number, one, NOW) for number, one in enumerate(tags)]
        monkeypatch.setattr(landed_ranges, "own_commits", lambda *_: iter(commits))
        monkeypatch.setattr(landed_ranges, "epoch_marks", lambda *_: list(marks))
        monkeypatch.setattr(landed_ranges, "_first_position", lambda *_: first)

    return use


def after(position, end=900):
    return ranges_after(None, SOURCE, landed(9, at(end), at(end)), position)


def test_the_batches_after_a_position(history):
    """The history reaches back to the position; batches that begin later are unchanged."""
    history([tag(4, 300, 400), tag(3, 250, 300), tag(2, 100, 200)])
    assert after(at(200)) == [landed(3, at(250), at(300)), landed(4, at(300), at(400))]
    assert after(at(150)) != []
    assert after(at(900)) == []
    history([tag(2, 100, 200), tag(1, 4, 100)])
    assert after(None) == [landed(1, at(4), at(100)), landed(2, at(100), at(200))]


def test_repetitions_are_not_batches(history):
    """Repeated positions are skipped; a repeated batch counts once, also if its own commit has expired."""
    idle, repeated = tag(5, 400, 400, again=True), tag(4, 300, 400, again=True)
    history([idle, repeated, tag(4, 300, 400), tag(3, 200, 300)])
    assert landed_batches(None, SOURCE) == [landed(3, at(200), at(300)), landed(4, at(300), at(400))]
    history([repeated])
    assert landed_batches(None, SOURCE) == [landed(4, at(300), at(400))]


def test_the_first_range_begins_at_the_readers_position(history):
    """The commits in between have expired; it is in safe mode where their log repeats that of an earlier epoch."""
    newest = [tag(9, 800, 900), tag(8, 700, 800)]
    history(newest)
    assert after(at(200)) == [landed(8, at(200), at(800)), landed(9, at(800), at(900))]
    history(newest, [tag(2, 100, 100, safe_until=at(300))])
    assert after(at(200))[0] == landed(8, at(200), at(800), safe_until=at(300))
    assert after(at(300))[0] == landed(8, at(300), at(800))


def test_only_the_position_is_left(history):
    """One range up to it, with the number of the repetition."""
    history([tag(9, 900, 900, again=True)])
    assert after(at(200)) == [landed(9, at(200), at(900))]
    assert after(None) == []
    history([tag(9, 900, 900, again=True)], first=at(4))
    assert after(None) == [landed(9, at(4), at(900))]


def test_a_reader_in_an_earlier_epoch(history):
    """One range for each epoch: the log after a snapshot may repeat what it has read."""
    mark = tag(5, 100, 100, safe_until=at(300), gtid_set=SEEN)
    chunk = Position.of_chunk(1, 3)
    history([tag(9, 800, 900), tag(8, 700, 800)], [mark])
    assert after(chunk) == [
        landed(7, chunk, Position(1, FAR, 0), gtid_set=SEEN),
        landed(8, at(100), at(800), safe_until=at(300)),
        landed(9, at(800), at(900)),
    ]
    history([tag(9, 800, 900)])
    assert after(chunk) == [landed(8, chunk, Position(1, FAR, 0)), landed(9, Position(2, "binlog.000000", 0), at(900))]
    assert after(Position(0, "binlog.000009", 4))[0].end == Position(0, FAR, 0)
    assert [one.batch for one in after(Position(0, "binlog.000009", 4))] == [7, 8, 9]


@pytest.mark.parametrize(
    ("tags", "rest"),
    [
        ([tag(4, 300, 400)], at(800)),
        ([tag(5, 4, 300, 3), tag(4, 300, 799)], at(400, 3)),
        ([tag(5, 4, 300, 3), tag(4, 300, 800)], None),
        ([tag(9, 4, 9000, 3, again=True)], at(400, 3)),
        ([tag(6, 4, 90, 4), tag(5, 4, 300, 3), tag(4, 300, 799)], at(200, 4)),
        ([tag(6, 4, 90, 4), tag(5, 4, 400, 3), tag(4, 300, 799)], None),
        ([tag(6, 4, 90, 4), tag(5, 4, 300, 3), tag(4, 300, 800)], None),
        ([tag(6, 4, 90, 5), tag(5, 4, 300, 3), tag(4, 300, 799)], None),
    ],
)
def test_an_overlap_continues_only_in_log_that_no_earlier_one_has_passed(history, tags, rest):
    """Also over several switches. An end that the history has lost, or that is unknown, is not taken for passed."""
    history(tags)
    later = LaterLogs(None, SOURCE, {3: at(400, 3), 4: at(200, 4)}.get)
    for _ in range(2):
        assert later.rest(at(800), tags[0].end.epoch) == rest
