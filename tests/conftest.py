"""The real servers as fixtures, each started once per test process when first asked for, and markers by folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dmdelta.lakehouse.session import SessionSettings, open_session
from tests.support.servers import Server, running

_FOLDER_MARKERS = ("unit", "spark", "integration", "crash")
_EXTRA_LANE = "mysql97"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{_EXTRA_LANE}: MySQL 9.7, whose version moves: runs only with -m {_EXTRA_LANE}"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    root = Path(__file__).parent
    for item in items:
        folder = item.path.relative_to(root).parts[0]
        if folder in _FOLDER_MARKERS:
            item.add_marker(folder)
    if _EXTRA_LANE not in config.getoption("-m"):
        extra = [item for item in items if item.get_closest_marker(_EXTRA_LANE)]
        items[:] = [item for item in items if item not in extra]
        config.hook.pytest_deselected(items=extra)


@pytest.fixture(scope="session")
def mysql80() -> Iterator[Server]:
    """MySQL 8.0 with GTIDs and full row metadata; take a `fresh_database` and leave global settings alone."""
    with running("mysql80") as server:
        yield server


@pytest.fixture(scope="session")
def mysql80_too() -> Iterator[Server]:
    """Another server of the same kind, for tasks of two sources."""
    with running("mysql80") as server:
        yield server


@pytest.fixture(scope="session")
def mysql57() -> Iterator[Server]:
    """MySQL 5.7: its row metadata has no column names."""
    with running("mysql57") as server:
        yield server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[Server]:
    """MariaDB 10.11."""
    with running("mariadb") as server:
        yield server


@pytest.fixture(scope="session")
def mysql97() -> Iterator[Server]:
    """MySQL 9.7, for tests marked `mysql97`."""
    with running("mysql97") as server:
        yield server


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one local session of the test process: two cores, two shuffle partitions."""
    session = open_session("dmdelta tests", SessionSettings("local[2]", "3g", 2))
    yield session
    session.stop()
