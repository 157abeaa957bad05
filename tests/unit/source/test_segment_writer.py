"""Segment files: what is under a name is whole."""

from pathlib import Path

from dmdelta.model.segment import MAGIC
from dmdelta.source.segments import SUFFIX, SegmentWriter, remove_parts


def names(folder: Path) -> list[str]:
    return sorted(place.name for place in (folder / "binlog.000001").iterdir())


def test_a_cut_moves_what_lies_beyond_into_the_next_segment(tmp_path: Path) -> None:
    """The bytes go on without a gap, and every segment begins with the format description."""
    writer = SegmentWriter(tmp_path, "binlog.000001", 100, b"FDE")
    writer.write(b"abcdef")
    writer.cut(104)
    writer.write(b"gh")
    writer.cut(108)
    found = [(tmp_path / "binlog.000001" / name).read_bytes() for name in names(tmp_path)]
    assert found == [MAGIC + b"FDEabcd", MAGIC + b"FDEefgh"]
    assert names(tmp_path) == ["00000000000100-00000000000104.binlog", "00000000000104-00000000000108.binlog"]
    assert writer.published == 108


def test_what_is_discarded_is_on_no_disk(tmp_path: Path) -> None:
    """An incomplete transaction is cut back; nothing at all leaves nothing."""
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
    """Only unfinished files go."""
    folder = tmp_path / "uuid.000001" / "binlog.000001"
    folder.mkdir(parents=True)
    (folder / f"4{SUFFIX}").write_bytes(b"x")
    (folder / "00000000000004-00000000000008.binlog").write_bytes(b"x")
    remove_parts(tmp_path)
    assert [place.name for place in folder.iterdir()] == ["00000000000004-00000000000008.binlog"]
