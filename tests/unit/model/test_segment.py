"""Segments of a log: names of files and folders, and the part after a position."""

from dataclasses import replace

import pytest

from dmdelta.errors import SourceError
from dmdelta.model.position import Position
from dmdelta.model.segment import (
    MOST_BYTES,
    Segment,
    epoch_folder,
    folder_part,
    parse_epoch_folder,
    parse_segment_name,
    segment_name,
)

WHOLE = Segment("made", "source", 2, "binlog.000007", 100, 500, 10)


def test_positions_and_size() -> None:
    """The end is exclusive; segments are in log order."""
    assert WHOLE.begin_position == Position(2, "binlog.000007", 100)
    assert WHOLE.end_position == Position(2, "binlog.000007", 500)
    assert WHOLE.size == 400
    assert Segment("made", "source", 2, "binlog.000007", 4, 500).skip == 0
    others = [replace(WHOLE, start=101), replace(WHOLE, binlog_file="binlog.000010"), replace(WHOLE, epoch=3, start=4)]
    assert sorted([*reversed(others), WHOLE], key=lambda segment: segment.order) == [WHOLE, *others]


@pytest.mark.parametrize(("offset", "start", "skip"), [(101, 101, 11), (300, 300, 210), (499, 499, 409)])
def test_the_part_behind_a_position(offset: int, start: int, skip: int) -> None:
    """The file still contains the bytes before it."""
    part = WHOLE.behind(Position(2, "binlog.000007", offset))
    assert part == replace(WHOLE, start=start, skip=skip)
    assert part.start - part.skip == WHOLE.start - WHOLE.skip


@pytest.mark.parametrize(
    "position",
    [
        Position(2, "binlog.000007", 100),
        Position(2, "binlog.000007", 500),
        Position(2, "binlog.000007", 99),
        Position(2, "binlog.000007", 501),
        Position(1, "binlog.000007", 300),
        Position(3, "binlog.000007", 300),
        Position(2, "binlog.000006", 300),
        Position(2, "binlog.000008", 300),
    ],
    ids=str,
)
def test_a_position_that_is_not_within_leaves_all_of_it(position: Position) -> None:
    """At the ends, in another file or epoch."""
    assert WHOLE.behind(position) is WHOLE


@pytest.mark.parametrize(("start", "end"), [(0, 1), (4, 500), (10**13, 10**14 - 1), (10**14, 10**15)])
def test_names_of_segments_round_trip(start: int, end: int) -> None:
    """Fourteen digits, and more if an offset needs them."""
    name = segment_name(start, end)
    assert parse_segment_name(name) == (start, end)
    assert len(name) >= len("00000000000004-00000000000500.binlog")


def test_names_sort_by_offset() -> None:
    assert segment_name(4, 500) == "00000000000004-00000000000500.binlog"
    assert sorted([segment_name(100, 200), segment_name(20, 100)]) == [segment_name(20, 100), segment_name(100, 200)]


@pytest.mark.parametrize("name", ["", "x", "4-500", "4-500.binlog.part", ".4-500.binlog", "4-.binlog", "a4-5.binlog"])
def test_other_files_are_no_segments(name: str) -> None:
    assert parse_segment_name(name) is None


def test_names_of_epochs_round_trip() -> None:
    """A uuid may contain dots."""
    assert epoch_folder("a-b", 1) == "a-b.000001"
    assert [parse_epoch_folder(epoch_folder(*epoch)) for epoch in (("a-b", 1), ("a.7", 12), ("x", 10**7))] == [
        ("a-b", 1),
        ("a.7", 12),
        ("x", 10**7),
    ]
    assert [parse_epoch_folder(name) for name in ("", "a", "a.", ".1", "a.x", "a.1b")] == [None] * 6


@pytest.mark.parametrize("name", ["binlog.000001", "...", "a b", "ü" * (MOST_BYTES // 2), "a" * MOST_BYTES, "\x20~"])
def test_a_file_name_is_one_part_of_a_path(name: str) -> None:
    """Up to 200 bytes."""
    assert folder_part(name) == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "a\\b", "/", "a\nb", "\x1f", "\x00", "ü" * (MOST_BYTES // 2) + "a", "a" * 201]
)
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    """The error shows its beginning."""
    with pytest.raises(SourceError, match="which is not a file name") as caught:
        folder_part(name)
    assert repr(name[:80]) in caught.value.message
    with pytest.raises(SourceError):
        epoch_folder(name, 1)
