"""Which parts of a log `verify` reads, and from which origin."""

import pytest

from dmdelta.engine.verify.bronze_rows import clipped, plan_ranges
from dmdelta.engine.verify.source_log import LogPart, Origin, plan_parts
from dmdelta.lakehouse.history import CommitTag
from dmdelta.model.position import Position


def at(offset, file=1, epoch=1):
    return Position(epoch, f"binlog.{file:06d}", offset)


def part(origin, begin, end):
    return LogPart(origin, begin, end)


def commit(version, begin, end, *, again=False):
    return CommitTag(app="app", version=version, task="t", source="s", run="run", begin=begin, end=end, again=again)


def planned(begin, end, there):
    return [(one.origin, one.begin, one.end) for one in plan_parts(begin, end, there)]


SERVER = [part(Origin.SERVER, at(4, file), at(1000, file)) for file in (1, 2, 3)]
RELAY = [
    part(Origin.RELAY, at(4), at(500)),
    part(Origin.RELAY, at(500), at(1000)),
    part(Origin.RELAY, at(4, 2), at(700, 2)),
]


def test_the_first_origin_that_has_a_position_is_read():
    """The server before the relay; there is no gap between files."""
    assert planned(at(300), at(600, 2), [*SERVER, *RELAY]) == [
        (Origin.SERVER, at(300), at(1000)),
        (Origin.SERVER, at(4, 2), at(600, 2)),
    ]


def test_purged_files_are_read_from_the_relay():
    """The server is read from the first file that it still has."""
    assert planned(at(300), at(900, 2), [*SERVER[1:], *RELAY]) == [
        (Origin.RELAY, at(300), at(500)),
        (Origin.RELAY, at(500), at(1000)),
        (Origin.SERVER, at(4, 2), at(900, 2)),
    ]


def test_unavailable_parts_are_reported():
    """Before, between and after available parts; files of another epoch are ignored."""
    assert planned(at(4), at(900, 3), [RELAY[1], SERVER[2]]) == [
        (Origin.NONE, at(4), at(500)),
        (Origin.RELAY, at(500), at(1000)),
        (Origin.NONE, at(1000), at(4, 3)),
        (Origin.SERVER, at(4, 3), at(900, 3)),
    ]
    assert planned(at(100, 2), at(900, 2), RELAY) == [
        (Origin.RELAY, at(100, 2), at(700, 2)),
        (Origin.NONE, at(700, 2), at(900, 2)),
    ]
    assert planned(at(4, 1, 2), at(9, 1, 2), SERVER) == [(Origin.NONE, at(4, 1, 2), at(9, 1, 2))]


@pytest.mark.parametrize(
    ("end", "there", "parts"),
    [
        (at(300), [part(Origin.SERVER, at(300), at(900))], [(Origin.NONE, at(100), at(300))]),
        (at(300), [part(Origin.SERVER, at(4), at(100))], [(Origin.NONE, at(100), at(300))]),
        (at(300), [part(Origin.SERVER, at(4, epoch=2), at(900, epoch=2))], [(Origin.NONE, at(100), at(300))]),
        (at(300), [part(Origin.RELAY, at(100), at(100))], [(Origin.NONE, at(100), at(300))]),
        (
            at(300),
            [part(Origin.RELAY, at(100), at(100)), part(Origin.SERVER, at(100), at(300))],
            [(Origin.SERVER, at(100), at(300))],
        ),
        (
            at(4, 2),
            [part(Origin.SERVER, at(4), at(200)), part(Origin.SERVER, at(4, 2), at(9, 2))],
            [(Origin.SERVER, at(100), at(200))],
        ),
        (
            at(9, 2),
            [part(Origin.SERVER, at(4), at(200)), part(Origin.RELAY, at(6, 2), at(9, 2))],
            [(Origin.SERVER, at(100), at(200)), (Origin.NONE, at(200), at(6, 2)), (Origin.RELAY, at(6, 2), at(9, 2))],
        ),
        (at(100), SERVER, []),
    ],
)
def test_parts_that_meet_the_ends_of_a_range(end, there, parts):
    """Parts at its ends, empty parts and those of other epochs hold nothing of it; a file starts at its first event."""
    assert planned(at(100), end, there) == parts


def test_ranges_are_the_landed_log():
    """The commits of an epoch form one range, across files, too; snapshots have none."""
    chunk = Position.of_chunk(1, 1)
    landed = [
        commit(1, chunk, Position.of_chunk(1, 2)),
        commit(2, at(200), at(300)),
        commit(3, at(300), at(1000)),
        commit(4, at(4, 2), at(50, 2)),
        commit(5, at(50, 2), at(50, 2), again=True),
        commit(6, at(70, 9, 2), at(70, 9, 2)),
        commit(7, at(70, 9, 2), at(90, 9, 2)),
    ]
    assert plan_ranges(landed, (), None) == [(at(200), at(50, 2)), (at(70, 9, 2), at(90, 9, 2))]


def test_ranges_before_the_history_begin_at_the_first_row():
    """For each epoch; expired rows are not expected."""
    landed = [commit(40, at(500, 3, 2), at(900, 3, 2))]
    held = [(at(10), at(801)), (at(30, 2, 2), at(700, 3, 2))]
    assert plan_ranges(landed, held, None) == [
        (at(10), at(801)),
        (at(30, 2, 2), at(500, 3, 2)),
        (at(500, 3, 2), at(900, 3, 2)),
    ]
    assert plan_ranges(landed, held, at(100, 2, 2)) == [
        (at(101, 2, 2), at(500, 3, 2)),
        (at(500, 3, 2), at(900, 3, 2)),
    ]


def test_a_gap_between_commits_of_an_epoch_is_part_of_a_range():
    """Landing leaves none, so the log decides what is missing: in a file, over files, and where the history begins."""
    chunks = commit(3, Position.of_chunk(-1, 1), Position.of_chunk(-1, 2))
    landed = [commit(1, at(200), at(300)), commit(2, at(400), at(500)), chunks, commit(4, at(70, 3), at(90, 3))]
    assert plan_ranges(landed, (), None) == [(at(200), at(90, 3))]
    landed = [commit(1, at(200), at(300)), commit(2, at(400, epoch=2), at(500, epoch=2))]
    assert plan_ranges(landed, (), None) == [(at(200), at(300)), (at(400, epoch=2), at(500, epoch=2))]
    assert plan_ranges([commit(9, at(400), at(500))], [(at(10), at(301))], None) == [
        (at(10), at(400)),
        (at(400), at(500)),
    ]
    assert plan_ranges([commit(9, at(400), at(500))], [(at(10), at(301))], at(350)) == [
        (at(351), at(400)),
        (at(400), at(500)),
    ]


def test_ranges_are_clipped_to_the_request():
    """At both ends; ranges outside are dropped."""
    ranges = [(at(4), at(100)), (at(200), at(300)), (at(4, 1, 2), at(90, 1, 2))]
    assert clipped(ranges, None, None) == ranges
    assert clipped(ranges, at(50), at(250)) == [(at(50), at(100)), (at(200), at(250))]
    assert clipped(ranges, at(100), at(200)) == []
