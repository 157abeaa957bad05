"""A task over three tables of a busy shop: rows that go, keys that change, and one without a key."""

from pathlib import Path

import pytest

from tests.support.servers import Server
from tests.support.task import Task

TABLES = ("orders", "inventory", "page_views")


@pytest.fixture
def task(mysql80: Server, tmp_path: Path) -> Task:
    """It begins where the server is now: older history is other tests' business."""
    made = Task(tmp_path, mysql80, mysql80.fresh_database("crash"), tables=TABLES)
    made.start_here()
    return made
