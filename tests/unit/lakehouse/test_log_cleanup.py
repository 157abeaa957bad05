"""Old files of a log are removed exactly, and what remains is readable from its first version on."""

import json
import os
from datetime import datetime, timedelta, timezone

import deltalake
import pyarrow as pa
import pytest

from dmdelta.lakehouse.access.log_cleanup import (
    CHECKSUMS_KEPT,
    plan_log_cleanup,
    read_log_cleanup,
    record_vacuum,
    remove_files,
    vacuumed_to,
)

NOW = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)


def names_of(version, *, checkpoint=False, spark=True):
    """The files of a commit: Spark's have three checksums."""
    whole = f"{version:020d}"
    checkpoints = [f"{whole}.checkpoint.parquet", f".{whole}.checkpoint.parquet.crc"] if checkpoint else []
    checksums = [f"{whole}.crc", f".{whole}.json.crc", f".{whole}.crc.crc"] if spark else []
    return [f"{whole}.json", *checksums, *checkpoints]


def log_of(versions, checkpoints=(), *, spark=True):
    return [name for version in versions for name in names_of(version, checkpoint=version in checkpoints, spark=spark)]


def plan(names, kept, newest=None, missing=()):
    """Version 10 was written now, each earlier one an hour before the next one."""

    def written(version):
        return None if version in missing else NOW - (10 - version) * HOUR

    return plan_log_cleanup([*names, "_last_checkpoint", "_last_vacuum_info"], written, kept, NOW, newest)


@pytest.mark.parametrize(
    ("kept", "newest", "first"),
    [
        (2 * HOUR, None, 8),
        (3 * HOUR, None, 4),
        (6 * HOUR, None, 4),
        (7 * HOUR, None, None),
        (2 * HOUR, 7, 4),
        (2 * HOUR, 3, None),
        (timedelta(0), None, 8),
    ],
)
def test_the_log_begins_at_a_checkpoint_before_which_everything_is_old(kept, newest, first):
    """Not after the version that is needed; all files of earlier versions are removed, the oldest first."""
    found = plan(log_of(range(11), (4, 8), spark=False), kept, newest)
    assert found.first == first
    assert list(found.files) == sorted(
        log_of(range(first or 0), (4,), spark=False), key=lambda name: (name.lstrip(".")[:20], name)
    )


def test_checksums_are_removed_earlier():
    """Those of versions before the newest checkpoint; a log of Spark has four files for each commit."""
    found = plan(log_of(range(11), (4, 8)), 100 * HOUR)
    kept = {*log_of(range(8), spark=False), *log_of(range(8, 11), (8,)), *log_of([4], (4,), spark=False)}
    assert found.first is None
    assert set(log_of(range(11), (4, 8))) - set(found.files) == kept
    assert plan(log_of([9, 10], (10,)), 100 * HOUR).files == (), f"not of the last {CHECKSUMS_KEPT}"


def test_a_commit_that_is_just_being_removed():
    assert plan(log_of(range(11), (4, 8)), HOUR, missing=(8,)).first == 4


def test_a_log_with_checkpoints_of_another_kind_is_not_cleaned():
    """Their parts are in files that only the checkpoint names."""
    other = f"{8:020d}.checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.parquet"
    assert plan([*log_of(range(11), (4,)), other], HOUR).files == ()
    parts = [f"{4:020d}.checkpoint.{part:010d}.{2:010d}.parquet" for part in (1, 2)]
    assert plan([*log_of(range(11), (8,)), *parts], HOUR).files[-4:] != ()
    assert set(parts) <= set(plan([*log_of(range(11), (8,)), *parts], HOUR).files)


def test_a_log_of_delta_rs(tmp_path):
    """Every remaining version is readable, and new commits follow."""
    for number in range(12):
        append(tmp_path, number)
        if number in (4, 8):
            deltalake.DeltaTable(tmp_path).create_checkpoint()
    log = tmp_path / "_delta_log"
    for file in log.iterdir():
        age = 3600.0 * (11 - int(file.name[:20])) if file.name[:1] == "0" else 0
        os.utime(file, (datetime.now(timezone.utc).timestamp() - age - 1,) * 2)
    cleanup = read_log_cleanup(log, 3 * HOUR)
    assert cleanup.first == 8
    remove_files(log, cleanup)
    remove_files(log, cleanup)  # another process was faster
    assert sorted(int(file.stem) for file in log.glob("*.json")) == [8, 9, 10, 11]
    for version in range(8, 12):
        assert rows(deltalake.DeltaTable(tmp_path, version=version)) == list(range(version + 1))
    append(tmp_path, 12)
    assert rows(deltalake.DeltaTable(tmp_path)) == list(range(13))
    assert read_log_cleanup(tmp_path / "absent", HOUR).files == ()


def append(table, number):
    deltalake.write_deltalake(table, pa.table({"n": [number]}), mode="append")


def rows(opened):
    return sorted(opened.to_pyarrow_table()["n"].to_pylist())


def test_what_a_vacuum_has_covered(tmp_path):
    """Recorded as Spark does, for a VACUUM after which Spark does not."""
    assert vacuumed_to(tmp_path) is None
    info = tmp_path / "_last_vacuum_info"
    info.write_text("{}\n")
    assert vacuumed_to(tmp_path) is None
    record_vacuum(tmp_path, HOUR)
    assert vacuumed_to(tmp_path) is None, "the log has no commit"
    for version in range(3, 7):
        file = tmp_path / f"{version:020d}.json"
        file.touch()
        os.utime(file, (datetime.now(timezone.utc).timestamp() - 3600 * (6 - version) - 1,) * 2)
    (tmp_path / "._last_vacuum_info.crc").touch()
    record_vacuum(tmp_path, 2 * HOUR)
    assert json.loads(info.read_text()) == {"latestCommitVersionOutsideOfRetentionWindow": 4}
    assert vacuumed_to(tmp_path) == 4
    assert sorted(file.name for file in tmp_path.iterdir() if "vacuum" in file.name) == ["_last_vacuum_info"]
    record_vacuum(tmp_path, 9 * HOUR)
    assert vacuumed_to(tmp_path) == 3
