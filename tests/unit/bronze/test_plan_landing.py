"""The segments of the next landing batch."""

import pytest

from dmdelta.bronze.datasource import PARTITION_BYTES, group_segments
from dmdelta.bronze.landing import assert_continues, plan_landing, plan_safe_until
from dmdelta.bronze.progress import LandedRange
from dmdelta.errors import CorruptBinlog, PositionLost
from dmdelta.model.gtid import parse_gtid_set
from dmdelta.model.position import Position, seq_of
from dmdelta.model.segment import Segment
from dmdelta.segments import EpochBegin

NOTHING = parse_gtid_set("", "mysql")


def segment(start: int, end: int, number: int = 1, epoch: int = 1) -> Segment:
    return Segment(f"{number}/{start}", "s", epoch, f"binlog.{number:06d}", start, end)


def landed(end: int, number: int = 1, batch: int = 7) -> LandedRange:
    return LandedRange(batch, Position(1, "binlog.000001", 4), Position(1, f"binlog.{number:06d}", end), NOTHING)


def test_the_first_batch_is_number_one_and_takes_all_that_fits():
    """Batches are numbered from 1: the number is the Delta transaction version."""
    batch = plan_landing([segment(4, 100), segment(100, 200)], None)
    assert (batch.number, str(batch.begin), str(batch.end)) == (1, "1/binlog.000001:4", "1/binlog.000001:200")


def test_the_next_batch_starts_where_bronze_ends():
    """Landed segments remain in the listing and are skipped."""
    batch = plan_landing([segment(4, 100), segment(100, 200), segment(4, 50, number=2)], landed(100))
    assert batch.number == 8
    assert [s.start for s in batch.segments] == [100, 4]


def test_without_new_segments_there_is_no_batch():
    """A batch is never empty."""
    assert plan_landing([segment(4, 100)], landed(100)) is None
    assert plan_landing([], None) is None


def test_a_batch_is_bounded_except_for_a_single_large_segment():
    """One transaction may be larger than a batch: it lands as a whole."""
    listing = [segment(4, 60), segment(60, 100_000), segment(100_000, 100_050)]
    assert [s.end for s in plan_landing(listing, None, batch_bytes=100).segments] == [60]
    assert [s.end for s in plan_landing(listing, landed(60), batch_bytes=100).segments] == [100_000]


def test_a_batch_never_crosses_an_epoch():
    """Each commit identifies one range of one server's log."""
    batch = plan_landing([segment(4, 100), segment(900, 950, number=3, epoch=2)], None)
    assert [s.epoch for s in batch.segments] == [1]


def test_a_gap_after_bronze_is_refused():
    """Segments that were purged before they landed are an error, not skipped."""
    with pytest.raises(CorruptBinlog, match="does not continue where bronze ends"):
        plan_landing([segment(300, 400)], landed(200))


def test_the_rest_of_a_partly_landed_segment_lands():
    """Another machine's relay, with its own folder, cut the same log at other positions."""
    batch = plan_landing([segment(4, 100), segment(150, 400), segment(400, 500)], landed(200))
    assert [(s.start, s.end, s.skip) for s in batch.segments] == [(200, 400, 50), (400, 500, 0)]
    assert (str(batch.begin), str(batch.end)) == ("1/binlog.000001:200", "1/binlog.000001:500")


def test_joined_batches_have_the_later_number():
    """A joined range identifies the later one's end."""
    first, second = (
        landed(100),
        LandedRange(8, Position(1, "binlog.000001", 100), Position(1, "binlog.000001", 300), NOTHING),
    )
    joined = first.join(second)
    assert (joined.batch, joined.begin, joined.end) == (8, first.begin, second.end)


def test_small_segments_share_a_task_and_large_ones_do_not():
    """Tasks have about equal sizes, in log order, and nothing is missing."""
    sizes = [10, 10, PARTITION_BYTES, PARTITION_BYTES // 2, PARTITION_BYTES // 2, 5]
    listing, start = [], 4
    for size in sizes:
        listing.append(segment(start, start + size))
        start += size
    groups = group_segments(listing)
    assert [len(group.segments) for group in groups] == [2, 1, 2, 1]
    assert [s for group in groups for s in group.segments] == listing


def test_a_restarted_task_is_in_safe_mode_until_the_previous_end():
    """Each batch inherits the end of safe mode until it is passed; joined ranges keep it."""
    former_end = Position(2, "binlog.000001", 200)

    def batch(begin: int, end: int, safe_until: Position | None) -> LandedRange:
        at = [Position(2, "binlog.000001", offset) for offset in (begin, end)]
        return LandedRange(1, *at, NOTHING, safe_until)

    mark, within, across = batch(4, 4, former_end), batch(4, 150, former_end), batch(150, 300, former_end)
    assert mark.safe_beyond == within.safe_beyond == former_end
    assert across.safe_beyond is None
    behind = batch(300, 400, None)
    assert mark.join(within).safe_until == former_end
    assert across.join(behind).safe_until == former_end
    assert behind.join(batch(400, 500, None)).safe_until is None


UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


@pytest.mark.parametrize(
    ("flavor", "gtids", "after", "repeated"),
    [
        ("mysql", f"{UUID}:1-9", f"{UUID}:1-12", ""),
        ("mysql", f"{UUID}:1-9", f"{UUID}:1-3:7-12", f"{UUID}:4-6"),
        ("mysql", f"{UUID}:1-9", None, ""),
        ("mariadb", "0-1-9", "0-2-12,1-1-1", ""),
        ("mariadb", "0-1-9,1-1-3", "0-1-9", "1-1-3"),
    ],
)
def test_an_epoch_that_would_repeat_transactions_does_not_land(flavor, gtids, after, repeated):
    """The log of another server has to continue after all that is in bronze."""
    place = Position(1, "binlog.000001", 104)
    end = LandedRange(7, place, place, parse_gtid_set(gtids, flavor))
    begin = EpochBegin("u", 2, flavor, "binlog.000001", 4, after)
    if not repeated:
        assert_continues(end, begin)
        return
    with pytest.raises(PositionLost, match="epoch 2 continues before the end of bronze") as raised:
        assert_continues(end, begin)
    assert raised.value.context["repeated"] == repeated


@pytest.mark.parametrize(
    ("end", "begin", "planned"),
    [
        (100, None, Position(1, "binlog.000001", 200)),
        (200, None, None),
        (100, seq_of("binlog.000012", 40), Position(2, "binlog.000012", 40)),
        (200, seq_of("binlog.000012", 40), None),
    ],
)
def test_an_overlap_continues_in_the_log_of_another_server(end, begin, planned):
    """It has the rest of the overlap at other positions, all before the end that it had when it took over."""
    position = Position(1, "binlog.000001", end)
    landed = LandedRange(7, position, position, NOTHING, Position(1, "binlog.000001", 200))
    epoch = None if begin is None else EpochBegin("u", 2, "mysql", "binlog.000009", 4, f"{UUID}:1-9", begin)
    assert plan_safe_until(landed, epoch) == planned
    assert plan_safe_until(None, epoch) is None


def test_a_log_that_is_read_again_keeps_its_own_overlap():
    """The mark of the restart is in the epoch that the relay begins."""
    mark = Position(2, "binlog.000001", 100)
    landed = LandedRange(7, mark, mark, NOTHING, Position(2, "binlog.000001", 200))
    assert plan_safe_until(landed, EpochBegin("u", 2, "mysql", "binlog.000001", 100, None)) == landed.safe_until
