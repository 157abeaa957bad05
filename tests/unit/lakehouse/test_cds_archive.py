"""The class archive that a local JVM starts with."""

import sys

from dmdelta.lakehouse.cds_archive import make
from dmdelta.lakehouse.cds_options import archive_options, class_archive


def test_sessions_use_the_archive_of_their_environment_if_it_exists(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert archive_options() == ""
    archive = class_archive()
    archive.parent.mkdir(parents=True)
    archive.touch()
    assert tmp_path in archive.parents
    assert f"-XX:SharedArchiveFile={archive} " in archive_options()
    assert make() == archive


def test_a_read_only_environment_is_not_an_error(monkeypatch, tmp_path):
    """If the environment is not writable, Spark starts without one."""
    (tmp_path / "share").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert make() is None
    assert archive_options() == ""
