"""A repository in which nights run."""

import pytest

from tests.unit.lanes.small_night import PROGRAM, ROOT, TESTS, git


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository as the current folder, with one commit of a test file and a program."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "load.py").write_text(PROGRAM)
    (tmp_path / ".gitignore").write_text("var\nmade\nbroken\n.pytest_cache\n__pycache__\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "docs").mkdir()
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "all")
    return tmp_path
