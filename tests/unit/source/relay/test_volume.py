"""A relay folder on a Databricks Volume, which only supports sequential writes."""

from pathlib import Path

import pytest

from dmdelta.errors import Fenced
from dmdelta.model.segment import MAGIC
from dmdelta.source.relay import relay_dir as relay_folder
from dmdelta.source.relay import volume
from dmdelta.source.relay.relay_dir import locked
from dmdelta.source.relay.segment_writer import SegmentWriter
from dmdelta.source.relay.volume import is_on_volume, scratch_folder


@pytest.fixture
def relay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of a source on a simulated Volume; local files are elsewhere."""
    monkeypatch.setattr(volume, "_VOLUMES", tmp_path / "Volumes")
    (tmp_path / "local").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "local"))
    return tmp_path / "Volumes/main/dm_meta/relay/one"


def files(folder: Path) -> list[str]:
    return sorted(place.name for place in folder.rglob("*") if place.is_file())


def test_a_volume_is_recognised_by_its_path() -> None:
    assert is_on_volume(Path("/Volumes/main/dm_meta/relay"))
    assert not is_on_volume(Path("/data/Volumes/relay"))
    assert scratch_folder(Path("/data/relay")) == Path("/data/relay")


def test_complete_segments_are_moved_to_a_volume(relay: Path) -> None:
    """Segments are cut on the local disk, because a Volume has no random writes."""
    writer = SegmentWriter(relay / "uuid.000001", "binlog.000001", 100, b"FDE")
    writer.write(b"abcdef")
    assert files(relay) == []
    writer.cut(104)
    assert files(relay) == ["00000000000100-00000000000104.binlog"]
    writer.write(b"gh")
    writer.discard_from(107)
    assert files(relay) == ["00000000000100-00000000000104.binlog", "00000000000104-00000000000107.binlog"]
    (found,) = relay.rglob("*104-*")
    assert found.read_bytes() == MAGIC + b"FDEefg"
    assert files(scratch_folder(relay)) == []


def test_the_lock_of_a_volume_is_a_local_file(relay: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Volume has no locks. The files of a killed relay are removed on both sides."""
    monkeypatch.setattr(relay_folder, "LOCK_SECONDS", 0.0)
    for place, name in ((relay, "00000000000004-00000000000009.part"), (scratch_folder(relay), "4.part")):
        (place / "uuid.000001/binlog.000001").mkdir(parents=True)
        (place / "uuid.000001/binlog.000001" / name).write_bytes(b"half of it")
    with locked(relay):
        assert files(relay) == []
        assert files(scratch_folder(relay)) == [".lock"]
        with pytest.raises(Fenced), locked(relay):
            pass
