"""Segment files: a published file is complete."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dmdelta.errors import SourceError
from dmdelta.model.segment import MAGIC, folder_part
from dmdelta.segments import EpochBegin, begin_epoch
from dmdelta.source.relay.segment_writer import SUFFIX, SegmentWriter, remove_parts
from dmdelta.source.relay.segmenter import Cutter


def names(folder: Path) -> list[str]:
    return sorted(place.name for place in (folder / "binlog.000001").iterdir())


def test_a_cut_moves_the_bytes_after_it_to_the_next_segment(tmp_path: Path) -> None:
    """The bytes have no gap, and every segment starts with the format description."""
    writer = SegmentWriter(tmp_path, "binlog.000001", 100, b"FDE")
    writer.write(b"abcdef")
    writer.cut(104)
    writer.write(b"gh")
    writer.cut(108)
    found = [(tmp_path / "binlog.000001" / name).read_bytes() for name in names(tmp_path)]
    assert found == [MAGIC + b"FDEabcd", MAGIC + b"FDEefgh"]
    assert names(tmp_path) == ["00000000000100-00000000000104.binlog", "00000000000104-00000000000108.binlog"]
    assert writer.published == 108


def test_discarded_bytes_are_not_published(tmp_path: Path) -> None:
    """An incomplete transaction is truncated; an empty segment leaves no file."""
    writer = SegmentWriter(tmp_path, "binlog.000001", 4, b"")
    writer.write(b"FDEabcdef")
    writer.discard_from(8)
    assert (tmp_path / "binlog.000001" / "00000000000004-00000000000008.binlog").read_bytes() == MAGIC + b"FDEa"
    writer.describe(b"FDE")
    writer.write(b"half a transaction")
    writer.discard_from(8)
    assert len(names(tmp_path)) == 1
    assert (writer.start, writer.end) == (8, 8)


def test_parts_of_a_killed_relay_are_removed(tmp_path: Path) -> None:
    """Only unfinished files are removed."""
    folder = tmp_path / "uuid.000001" / "binlog.000001"
    folder.mkdir(parents=True)
    (folder / f"4{SUFFIX}").write_bytes(b"x")
    (folder / "00000000000004-00000000000008.binlog").write_bytes(b"x")
    remove_parts(tmp_path)
    assert [place.name for place in folder.iterdir()] == ["00000000000004-00000000000008.binlog"]


LEADING_OUT = [
    "../../x.000001",
    "/etc/x.000001",
    "a/../../x.000001",
    "..\\x.000001",
    "x\0.000001",
    "é" * 120 + ".000001",
]


@given(st.text(min_size=1))
@example("..")
def test_a_server_uuid_is_a_single_folder_name(told: str) -> None:
    """Otherwise the uuid is refused."""
    try:
        part = folder_part(told)
    except SourceError:
        return
    place = Path("/relay") / part
    assert place.parent == Path("/relay")
    assert place.name == told != ".."


@pytest.mark.parametrize("name", LEADING_OUT)
def test_a_name_that_points_outside_the_relay_folder_is_refused(tmp_path: Path, name: str) -> None:
    """As the uuid, as the first file, or as the next file; nothing is written."""
    folder = tmp_path / "a" / "relay"
    folder.mkdir(parents=True)
    with pytest.raises(SourceError, match="not a file name"):
        begin_epoch(folder, EpochBegin(name, 1, "mysql", "binlog.000001", 4, None))
    with pytest.raises(SourceError, match="not a file name"):
        Cutter(folder, name, 4, b"")
    cutter = Cutter(folder, "binlog.000000", 4, b"")
    with pytest.raises(SourceError) as caught:
        cutter.next_file(name)
    assert "security.ssl-ca" in caught.value.hint
    assert [place for place in tmp_path.rglob("*") if place.is_file()] == []
