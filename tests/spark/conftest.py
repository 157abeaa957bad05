"""One local Spark session with Delta for all tests of the folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dmdelta.lakehouse.place import Lakehouse
from dmdelta.lakehouse.session import SessionSettings, open_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Two cores, two shuffle partitions; a test takes its own root under `tmp_path`."""
    session = open_session("dmdelta tests", SessionSettings("local[2]", "2g", 2))
    yield session
    session.stop()


@pytest.fixture
def lakehouse(tmp_path: Path) -> Lakehouse:
    """An empty lakehouse of the test's own."""
    return Lakehouse(root=str(tmp_path / "lakehouse"))
