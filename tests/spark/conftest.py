"""A lakehouse of its own for each test."""

from pathlib import Path

import pytest

from dmdelta.lakehouse.layout import Lakehouse


@pytest.fixture
def lakehouse(tmp_path: Path) -> Lakehouse:
    """An empty lakehouse of the test's own."""
    return Lakehouse(root=str(tmp_path / "lakehouse"))
