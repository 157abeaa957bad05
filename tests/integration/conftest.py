"""One local Spark session with Delta for all tests of the folder that ask for it."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from dmdelta.lakehouse.session import SessionSettings, open_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Two cores, two shuffle partitions."""
    session = open_session("dmdelta tests", SessionSettings("local[2]", "3g", 2))
    yield session
    session.stop()
