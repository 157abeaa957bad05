"""From the log to silver through memory and through bronze: live servers, a tangled workload, any batches."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support import tangles
from tests.support.catalog import Observer
from tests.support.paths import assert_same, both
from tests.support.pipeline import Pipeline
from tests.support.recording import record
from tests.support.servers import Server

SERVERS = ["mysql80", "mysql57", "mariadb", pytest.param("mysql97", marks=pytest.mark.mysql97)]


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Server:
    """The server that the test names."""
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.mark.long
@pytest.mark.parametrize("image", ["FULL", "MINIMAL"])
@pytest.mark.parametrize("server", SERVERS, indirect=True)
def test_silver_and_bronze_are_the_same(server: Server, image: str, spark: SparkSession, tmp_path: Path) -> None:
    """Key changes, rows deleted and inserted again, no key, partial images, statements: both paths equal the source."""
    database = server.fresh_database("paths")
    observer = Observer(server, database)
    server.execute(*tangles.TABLES.values(), database=database)
    archives = [tmp_path / "log", tmp_path / "later"]
    begin = f"SET binlog_row_image = '{image}'"
    observer.look()
    with server.connect(database=database, autocommit=False, init_command=begin) as connection:
        work = tangles.Tangler(
            connection, seed=len(server.name), statements=server.name != "mysql57", defaults=image == "MINIMAL"
        )
        for archive in archives:
            work.work(60)
            observer.look()
            record(server, archive)

    def replicate(pipeline: Pipeline) -> None:
        pipeline.batch_bytes = 20_000
        for archive in archives:
            pipeline.catch_up(archive, server.name, [database], server.flavor, observer.structures)

    memory, bronze = both(spark, lambda name: Pipeline(spark, tmp_path / name), replicate)
    assert_same(spark, memory, bronze, [(database, table) for table in tangles.TABLES])
    assert [str(found) for table in tangles.TABLES for found in memory.differences(server, database, table)] == []
