"""Which segments are purged: only landed ones, oldest first, by age or because the disk is nearly full."""

import errno
import os
import threading
from datetime import datetime, timedelta, timezone

import pytest

from dmdelta.errors import CorruptBinlog
from dmdelta.model.position import Position
from dmdelta.model.segment import segment_name
from dmdelta.segments import EpochBegin, begin_epoch, list_segments
from dmdelta.source.relay.purge import (
    Known,
    PurgePolicy,
    assert_whole,
    landed_at_purge,
    landed_segments,
    plan_purge,
    purge,
    record_landed,
)

NOW = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)
PLENTY = 1 << 40


@pytest.fixture
def relay(tmp_path):
    """Two files of two segments of 100 bytes each; the first was cut five hours ago, each next one an hour later."""
    begin = begin_epoch(tmp_path, EpochBegin("uuid", 1, "mysql", "binlog.000001", 4, None))
    for number, (file, start) in enumerate([(1, 4), (1, 104), (2, 4), (2, 104)]):
        path = begin / f"binlog.{file:06d}" / segment_name(start, start + 100)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(100))
        cut_at = (NOW - timedelta(hours=5 - number)).timestamp()
        os.utime(path, (cut_at, cut_at))
    return tmp_path


def at(file, offset):
    return Position(1, f"binlog.{file:06d}", offset)


def planned(relay, landed, free=PLENTY, hours=24.0, space=0):
    old = landed_segments(list_segments(relay, "s"), landed)
    return [
        (segment.binlog_file[-1], segment.start)
        for segment in plan_purge(old, NOW, free, PurgePolicy(timedelta(hours=hours), space))
    ]


def test_segments_that_have_not_landed_are_kept(relay):
    """Regardless of age and free space; the newest segment is always kept."""
    assert planned(relay, at(1, 204), free=0, hours=0, space=PLENTY) == [("1", 4), ("1", 104)]
    assert planned(relay, at(1, 203), hours=0) == [("1", 4)]
    assert planned(relay, at(2, 204), hours=0) == [("1", 4), ("1", 104), ("2", 4)]
    assert planned(relay, at(1, 4), hours=0) == []


def test_segments_are_purged_by_age_and_by_free_space(relay):
    """Expired segments are purged; if the disk is nearly full, as many others as needed."""
    assert planned(relay, at(2, 204)) == []
    assert planned(relay, at(2, 204), hours=4) == [("1", 4), ("1", 104)]
    assert planned(relay, at(2, 204), free=500, space=500) == []
    assert planned(relay, at(2, 204), free=500, space=501) == [("1", 4)]
    assert planned(relay, at(2, 204), free=500, space=601) == [("1", 4), ("1", 104)]


def test_the_remaining_log_has_no_gap(relay):
    """Segments and empty folders are removed; the rest is contiguous, but no longer starts where the epoch did."""
    found = list_segments(relay, "s")
    assert_whole(found)
    assert purge(found[:3], Known(at(2, 104), "")) == 300
    left = list_segments(relay, "s")
    assert left == found[3:]
    assert not (relay / "uuid.000001" / "binlog.000001").exists()
    assert purge(found[:3], Known(at(2, 104), "")) == 0
    with pytest.raises(CorruptBinlog, match="purged after they had landed"):
        assert_whole(left)


def test_what_has_landed_is_recorded_before_a_purge(relay):
    """The newest record stays; without a purge there is none."""
    found = list_segments(relay, "s")
    assert purge([], Known(at(2, 204), "")) == 0
    assert landed_at_purge(relay) is None
    purge(found[:1], Known(at(2, 104), "u:1-9"))
    purge(found[1:2], Known(at(2, 4), "u:1-5"))
    assert landed_at_purge(relay) == Known(at(2, 104), "u:1-9")
    purge(found[2:3], Known(at(2, 204), "u:1-12"))
    assert landed_at_purge(relay) == Known(at(2, 204), "u:1-12")
    assert [place.name for place in relay.iterdir() if place.is_file()] == ["landed.json"]
    (relay / "landed.json").write_text("{")
    with pytest.raises(CorruptBinlog, match=r"cannot read .*landed\.json"):
        landed_at_purge(relay)


def files_of(relay):
    return sorted(place.name for place in relay.iterdir() if place.is_file())


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_purged_before_what_has_landed_is_recorded(relay, monkeypatch, error):
    """The segments make room for the record. If something else takes that room, they are purged nevertheless."""
    found = list_segments(relay, "s")

    def sync(_):
        if full or list_segments(relay, "s") == found:
            raise OSError(error, os.strerror(error))

    full = False
    monkeypatch.setattr("dmdelta.source.relay.purge.os.fsync", sync)
    assert purge(found[:2], Known(at(2, 4), "u:1-5")) == 200
    assert list_segments(relay, "s") == found[2:]
    assert landed_at_purge(relay) == Known(at(2, 4), "u:1-5")
    full = True
    assert purge(found[2:3], Known(at(2, 104), "u:1-9")) == 100
    assert landed_at_purge(relay) == Known(at(2, 4), "u:1-5")
    assert files_of(relay) == ["landed.json"]


def test_nothing_is_purged_if_it_cannot_be_recorded(relay, monkeypatch):
    """For a reason other than a full disk. No temporary file remains."""

    def sync(_):
        raise OSError(errno.EIO, "broken")

    found = list_segments(relay, "s")
    monkeypatch.setattr("dmdelta.source.relay.purge.os.fsync", sync)
    with pytest.raises(OSError, match="broken"):
        purge(found[:2], Known(at(2, 4), "u:1-5"))
    assert list_segments(relay, "s") == found
    assert files_of(relay) == []


def test_two_processes_record_one_after_the_other(relay, monkeypatch):
    """The older record does not replace the newer one; the file that is written is not listed as a binlog file."""
    written = []

    def sync(_):
        written.extend(files_of(relay))
        if len(written) == 1:
            other.start()
            other.join(0.2)

    monkeypatch.setattr("dmdelta.source.relay.purge.os.fsync", sync)
    other = threading.Thread(target=record_landed, args=(relay, Known(at(2, 104), "u:1-9")))
    record_landed(relay, Known(at(2, 4), "u:1-5"))
    other.join()
    assert landed_at_purge(relay) == Known(at(2, 104), "u:1-9")
    assert not [name for name in written if name.rpartition(".")[2].isdigit()]
