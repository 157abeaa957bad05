"""A relay folder on a Databricks Volume, which only supports sequential writes."""

import os
import time
from pathlib import Path

import pytest

from dmdelta.errors import Fenced
from dmdelta.model.segment import MAGIC
from dmdelta.source.relay import relay_dir as relay_folder
from dmdelta.source.relay import volume
from dmdelta.source.relay.relay_dir import locked
from dmdelta.source.relay.segment_writer import ABANDONED_SECONDS, SegmentWriter, remove_parts
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


def unfinished(place: Path, name: str, age: float) -> Path:
    """A part that was last written to `age` seconds ago."""
    part = place / "uuid.000001/binlog.000001" / name
    part.parent.mkdir(parents=True, exist_ok=True)
    part.write_bytes(b"half of it")
    os.utime(part, (time.time() - age,) * 2)
    return part


def test_the_lock_of_a_volume_is_a_local_file(relay: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Volume has no locks. The files of a killed relay are removed on both sides."""
    monkeypatch.setattr(relay_folder, "LOCK_SECONDS", 0.0)
    unfinished(relay, "00000000000004-00000000000009.part", ABANDONED_SECONDS + 60)
    unfinished(scratch_folder(relay), "4.part", 0)
    with locked(relay):
        assert files(relay) == []
        assert files(scratch_folder(relay)) == [".lock"]
        with pytest.raises(Fenced), locked(relay):
            pass


def test_a_copy_of_another_machine_stays(relay: Path) -> None:
    """The lock does not exclude other machines. Only a copy that nothing writes any longer is removed."""
    fresh = unfinished(relay, "00000000000004-00000000000009.part", ABANDONED_SECONDS - 60)
    old = unfinished(relay, "00000000000009-00000000000012.part", ABANDONED_SECONDS + 60)
    with locked(relay):
        assert (fresh.exists(), old.exists()) == (True, False)
    fresh.rename(fresh.with_suffix(".binlog"))
    assert files(relay) == ["00000000000004-00000000000009.binlog"]


def test_a_copy_that_disappears_is_ignored(relay: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another machine renames it after this one has listed the folder."""
    gone = unfinished(relay, "00000000000004-00000000000009.part", ABANDONED_SECONDS + 60)
    listed = {relay: [gone], scratch_folder(relay): []}
    monkeypatch.setattr(Path, "glob", lambda place, _pattern: listed[place])
    gone.unlink()
    remove_parts(relay)
