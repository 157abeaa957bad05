"""The real servers as fixtures, each started once per test process when first asked for, and markers by folder."""

import os
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import hypothesis
import pytest
from pyspark.sql import SparkSession

from dmdelta.lakehouse.session import SessionSettings, is_provided, open_session
from tests.support.connect_server import choose_remote
from tests.support.jvm import JVM_OPTIONS, LONG_LIVED
from tests.support.servers import Server, running
from tests.support.servers.tidb import TidbServer, running_tidb

_FOLDER_MARKERS = ("unit", "spark", "integration", "crash")
_EXTRA_LANES = ("mysql97", "tidb")
_MANY = 100
"""So many tests with Spark keep two processes busy for more than five minutes."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "mysql97: MySQL 9.7, whose version moves: runs only with -m mysql97")
    choose_remote()
    hypothesis.settings.register_profile("dmdelta", deadline=None)  # a test says what is right, not how soon
    hypothesis.settings.load_profile("dmdelta")
    config.addinivalue_line("markers", "tidb: TiDB, which takes minutes to build: runs only with -m tidb")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    root = Path(__file__).parent
    for item in items:
        folder = item.path.relative_to(root).parts[0]
        if folder in _FOLDER_MARKERS:
            item.add_marker(folder)
    unasked = [lane for lane in _EXTRA_LANES if lane not in config.getoption("-m")]
    if unasked:
        extra = [item for item in items if any(map(item.get_closest_marker, unasked))]
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
def mysql80_target() -> Iterator[Server]:
    """A third one, as the target of tasks of two sources."""
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
def tidb() -> Iterator[TidbServer]:
    """TiDB, for tests marked `tidb`."""
    with running_tidb() as server:
        yield server


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """The one session of the test process: local, of two cores and two shuffle partitions, or that of `make test-connect`.

    Its catalog has a folder of its own: test processes use the same names.
    """
    settings = SessionSettings("local[2]", "3g", 2)
    if is_provided():
        # PySpark notes in the environment that it is remote: that is to stay.
        session = open_session("dmdelta tests", settings)
    else:
        users = sum("spark" in getattr(item, "fixturenames", ()) for item in request.session.items)
        options = LONG_LIVED if users > _MANY else JVM_OPTIONS
        folder = f"-Dspark.sql.warehouse.dir={tmp_path_factory.mktemp('warehouse')}"
        with patch.dict(os.environ, {"JDK_JAVA_OPTIONS": f"{options} {folder}"}):
            session = open_session("dmdelta tests", settings)
    yield session
    session.stop()
