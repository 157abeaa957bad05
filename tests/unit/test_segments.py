"""The relay folder's listing: order, gaps, archives."""

from pathlib import Path

import pytest

from dmdelta.errors import CorruptBinlog, SourceError
from dmdelta.model.position import Position, seq_of
from dmdelta.model.segment import MAGIC, Segment, epoch_folder, segment_name
from dmdelta.segments import EpochBegin, RelayListing, begin_epoch, follows, list_segments, read_path
from dmdelta.source.relay.relay_dir import log_end_of

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def put(root: Path, epoch: int, binlog_file: str, start: int, end: int) -> Path:
    folder = root / epoch_folder(UUID, epoch) / binlog_file
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / segment_name(start, end)
    place.write_bytes(MAGIC)
    return place


def test_segments_are_listed_in_log_order(tmp_path):
    """File numbers are compared as numbers: binlog.999999 sorts before binlog.1000000."""
    put(tmp_path, 1, "binlog.1000000", 4, 500)
    put(tmp_path, 1, "binlog.999999", 4, 200)
    put(tmp_path, 1, "binlog.999999", 200, 900)
    listed = list_segments(tmp_path, "s")
    assert [(s.binlog_file, s.start, s.end) for s in listed] == [
        ("binlog.999999", 4, 200),
        ("binlog.999999", 200, 900),
        ("binlog.1000000", 4, 500),
    ]


def test_a_temporary_file_is_not_a_segment(tmp_path):
    """A file that the relay has not renamed yet is not listed."""
    place = put(tmp_path, 1, "binlog.000001", 4, 200)
    (place.parent / ".00000000000200.part").write_bytes(b"half")
    assert len(list_segments(tmp_path, "s")) == 1


@pytest.mark.parametrize(
    ("second", "why"),
    [
        ((1, "binlog.000001", 300, 400), "bytes are missing"),
        ((1, "binlog.000001", 150, 400), "bytes are there twice"),
        ((1, "binlog.000002", 200, 400), "the file's beginning is missing"),
        ((1, "binlog.000003", 4, 400), "a whole file is missing"),
    ],
)
def test_segments_that_do_not_join_are_refused(tmp_path, second, why):
    """A gap or an overlap is an error with both segments."""
    put(tmp_path, 1, "binlog.000001", 4, 200)
    put(tmp_path, *second)
    with pytest.raises(CorruptBinlog, match="do not join") as caught:
        list_segments(tmp_path, "s")
    assert caught.value.context["ends"] == "1/binlog.000001:200", why


def test_a_new_epoch_may_start_anywhere(tmp_path):
    """Another server's log is joined by GTID, not by offset."""
    put(tmp_path, 1, "binlog.000007", 4, 200)
    put(tmp_path, 2, "mysql-bin.000003", 1234, 2000)
    assert [s.epoch for s in list_segments(tmp_path, "s")] == [1, 2]


def test_whole_binlog_files_are_segments(tmp_path):
    """An archive folder is read as is: a file is the segment [4, size)."""
    (tmp_path / "binlog.000001").write_bytes(MAGIC + b"x" * 96)
    (tmp_path / "binlog.index").write_text("./binlog.000001\n")
    assert list_segments(tmp_path, "s") == [Segment(str(tmp_path / "binlog.000001"), "s", 1, "binlog.000001", 4, 100)]


def test_a_path_can_be_a_file_or_a_segment(tmp_path):
    """The data source accepts every kind of path."""
    place = put(tmp_path, 3, "binlog.000001", 4, 200)
    (whole,) = read_path(place, "s")
    assert (whole.epoch, whole.binlog_file, whole.start, whole.end) == (3, "binlog.000001", 4, 200)
    with pytest.raises(SourceError, match="no binlog file at"):
        read_path(tmp_path / "nothing", "s")


def test_a_missing_relay_folder_is_an_error_not_an_empty_log(tmp_path):
    """A mistyped folder must not look like a source without changes."""
    with pytest.raises(SourceError, match=r"relay folder .* does not exist"):
        list_segments(tmp_path / "nothing", "s")


def test_follows_compares_with_a_position():
    """Landing compares with the position recorded in bronze."""
    segment = Segment("p", "s", 1, "binlog.000002", 4, 300)
    assert follows(Position(1, "binlog.000001", 777), segment)
    assert not follows(Position(1, "binlog.000002", 100), segment)
    assert not follows(Position(2, "binlog.000001", 777), segment)


def assert_follows_the_folder(listing: RelayListing, root: Path) -> list[Segment]:
    found = listing.segments()
    assert found == list_segments(root, "s")
    return found


def test_a_folder_that_is_listed_again_has_new_segments_and_those_that_are_left(tmp_path):
    """Segments of the same file, of the next file and of the next epoch are added; the oldest ones are purged."""
    listing = RelayListing(tmp_path, "s")
    assert assert_follows_the_folder(listing, tmp_path) == []
    oldest = put(tmp_path, 1, "binlog.000001", 4, 200)
    first = assert_follows_the_folder(listing, tmp_path)
    put(tmp_path, 1, "binlog.000001", 300, 400)
    put(tmp_path, 1, "binlog.000001", 200, 300)
    second = assert_follows_the_folder(listing, tmp_path)
    assert second[0] is first[0]
    oldest.unlink()
    put(tmp_path, 1, "binlog.000002", 4, 90)
    put(tmp_path, 2, "binlog.000001", 700, 900)
    third = assert_follows_the_folder(listing, tmp_path)
    assert third[0] is second[1]
    assert [(one.epoch, one.start) for one in third] == [(1, 200), (1, 300), (1, 4), (2, 700)]
    assert listing.segments() is third


@pytest.mark.parametrize("removed", [0, 1, 2], ids=["nothing else", "the oldest one, too", "the two oldest ones, too"])
def test_a_gap_is_noticed_when_the_folder_is_listed_again(tmp_path, removed):
    places = [put(tmp_path, 1, "binlog.000001", 4, 200)]
    places += [put(tmp_path, 1, "binlog.000001", start, start + 100) for start in range(200, 800, 100)]
    listing = RelayListing(tmp_path, "s")
    listing.segments()
    for place in (*places[:removed], places[4]):
        place.unlink()
    for _ in range(2):
        with pytest.raises(CorruptBinlog, match="do not join"):
            listing.segments()
    put(tmp_path, 1, "binlog.000001", 500, 600)
    assert_follows_the_folder(listing, tmp_path)


@pytest.mark.parametrize("start", [150, 300])
def test_a_new_segment_that_does_not_join_is_noticed(tmp_path, start):
    put(tmp_path, 1, "binlog.000001", 4, 200)
    listing = RelayListing(tmp_path, "s")
    listing.segments()
    put(tmp_path, 1, "binlog.000001", start, 400)
    with pytest.raises(CorruptBinlog, match="do not join"):
        listing.segments()


def test_a_folder_that_was_emptied_is_empty(tmp_path):
    place = put(tmp_path, 1, "binlog.000001", 4, 200)
    listing = RelayListing(tmp_path, "s")
    assert len(listing.segments()) == 1
    place.unlink()
    assert assert_follows_the_folder(listing, tmp_path) == []
    with pytest.raises(SourceError, match="does not exist"):
        RelayListing(tmp_path / "nothing", "s").segments()


def test_whole_files_of_an_archive_are_listed_again_as_they_have_grown(tmp_path):
    file = tmp_path / "binlog.000001"
    file.write_bytes(MAGIC + bytes(96))
    listing = RelayListing(tmp_path, "s")
    assert_follows_the_folder(listing, tmp_path)
    file.write_bytes(MAGIC + bytes(196))
    assert assert_follows_the_folder(listing, tmp_path)[0].end == 200


def test_the_end_of_the_log_when_an_epoch_started(tmp_path):
    """It is a position of the epoch, also in another file; it is unknown if the epoch does not follow a GTID set."""
    for epoch, until in ((1, None), (2, seq_of("binlog.000123", 5 << 32))):
        begin_epoch(tmp_path, EpochBegin(UUID, epoch, "mysql", "binlog.000099", 4, f"{UUID}:1-9", until))
    assert [log_end_of(tmp_path, epoch) for epoch in (1, 2, 3)] == [None, Position(2, "binlog.000123", 5 << 32), None]
