"""Readers that open one consistent snapshot, on real servers, without Spark."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from threading import Event

import pytest

from dmdelta.errors import SourceError, SourceUnavailable, StructureChanged
from dmdelta.source.connection import open_connection
from dmdelta.source.snapshot import barrier as meetings
from dmdelta.source.snapshot.barrier import SnapshotBarrier, call, lead, meet
from dmdelta.source.snapshot.chunk import Chunk, RowPackets, read_together
from tests.support.catalog import structures_of
from tests.support.relaying import endpoint_of
from tests.support.servers import Server

SERVERS = ["mysql80", "mysql57", "mariadb"]


@pytest.mark.parametrize("server", SERVERS)
def test_readers_see_one_position_while_a_writer_writes(server: str, request: pytest.FixtureRequest) -> None:
    """Two tables that change in the same transactions have the same number of rows in both readers."""
    source: Server = request.getfixturevalue(server)
    database = source.fresh_database("meet")
    for table in ("a", "b"):
        source.execute(f"CREATE TABLE {table} (id INT AUTO_INCREMENT PRIMARY KEY)", database=database)
    schemas = structures_of(source, database)
    endpoint, shared = endpoint_of(source), SnapshotBarrier("one", len(schemas))
    begun, over = Event(), Event()

    def write() -> None:
        with source.connect(database=database) as connection, connection.cursor() as cursor:
            while not over.is_set():
                connection.begin()
                cursor.execute("INSERT INTO a VALUES (NULL)")
                cursor.execute("INSERT INTO b VALUES (NULL)")
                connection.commit()
                begun.set()

    def read(number: int) -> tuple[object, int]:
        chunks = [Chunk(1, schemas[number])]
        (parts,) = (list(parts) for _, parts in read_together(endpoint, chunks, source.flavor, shared, number))
        return parts[0], sum(part.end for part in parts[1:] if isinstance(part, RowPackets))

    with ThreadPoolExecutor() as pool, closing(open_connection(endpoint)) as leader:
        writing = pool.submit(write)
        try:
            assert begun.wait(10)
            call(leader, shared)
            reading = [pool.submit(read, number) for number in range(shared.readers)]
            lead(leader, shared, lambda: False)
            (one, first), (other, second) = (future.result() for future in reading)
        finally:
            over.set()
        writing.result()
    assert one == other
    assert first == second > 0


@pytest.mark.parametrize("server", SERVERS)
def test_a_table_that_changes_after_the_snapshot_is_an_error(server: str, request: pytest.FixtureRequest) -> None:
    """The snapshot is older than the statement, and MySQL 8 shows the structure as of the snapshot."""
    source: Server = request.getfixturevalue(server)
    database = source.fresh_database("meet")
    source.execute("CREATE TABLE a (id INT PRIMARY KEY, e ENUM('x','y'))", database=database)
    (schema,), shared = structures_of(source, database), SnapshotBarrier("four", 1)

    def read() -> None:
        for _, parts in read_together(endpoint_of(source), [Chunk(1, schema)], source.flavor, shared, 0):
            next(parts)
            source.execute("ALTER TABLE a MODIFY e ENUM('x','y','z')", database=database)
            with pytest.raises(StructureChanged, match=r"\.a was changed after its snapshot was planned: e"):
                next(parts)

    with ThreadPoolExecutor() as pool, closing(open_connection(endpoint_of(source))) as leader:
        call(leader, shared)
        reading = pool.submit(read)
        lead(leader, shared, lambda: False)
        reading.result()


@pytest.mark.parametrize("server", SERVERS)
def test_a_column_that_is_added_before_the_snapshot_is_an_error(server: str, request: pytest.FixtureRequest) -> None:
    """The log continues at the snapshot, so silver would not follow the statement."""
    source: Server = request.getfixturevalue(server)
    database = source.fresh_database("meet")
    source.execute("CREATE TABLE a (id INT PRIMARY KEY)", database=database)
    (schema,), shared = structures_of(source, database), SnapshotBarrier("five", 1)
    source.execute("ALTER TABLE a ADD c INT NOT NULL DEFAULT 5", database=database)

    def read() -> None:
        for _, parts in read_together(endpoint_of(source), [Chunk(1, schema)], source.flavor, shared, 0):
            next(parts)
            with pytest.raises(StructureChanged, match=r"\.a was changed after its snapshot was planned: c \(new\)"):
                next(parts)

    with ThreadPoolExecutor() as pool, closing(open_connection(endpoint_of(source))) as leader:
        call(leader, shared)
        reading = pool.submit(read)
        lead(leader, shared, lambda: False)
        reading.result()


def test_readers_without_a_leader_do_not_wait(mysql80: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A meeting that fails ends for all: the leader lacks a reader, and the reader lacks its leader."""
    monkeypatch.setattr(meetings, "READY_SECONDS", 0.3)
    endpoint, shared = endpoint_of(mysql80), SnapshotBarrier("two", 2)
    opened = (closing(open_connection(endpoint)) for _ in range(2))
    with ThreadPoolExecutor() as pool, next(opened) as reader, next(opened) as leader:
        call(leader, shared)
        waiting = pool.submit(meet, reader, shared, 0)
        with pytest.raises(SourceError, match="not all 2 readers arrived"):
            lead(leader, shared, lambda: False)
        with pytest.raises(SourceUnavailable, match="missed the shared snapshot"):
            waiting.result(10)


def test_an_account_that_may_not_lock_is_an_error(mysql80: Server) -> None:
    """RELOAD is missing: the error names it, and no reader waits."""
    mysql80.execute("CREATE USER IF NOT EXISTS 'reader'@'%' IDENTIFIED BY 'reader'")
    mysql80.execute("GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'reader'@'%'")
    endpoint, shared = replace(endpoint_of(mysql80), user="reader", password="reader"), SnapshotBarrier("three", 1)
    opened = (closing(open_connection(endpoint)) for _ in range(2))
    with ThreadPoolExecutor() as pool, next(opened) as reader, next(opened) as leader:
        call(leader, shared)
        waiting = pool.submit(meet, reader, shared, 0)
        with pytest.raises(SourceError, match="RELOAD") as refused:
            lead(leader, shared, lambda: False)
        assert "GRANT RELOAD" in (refused.value.hint or "")
        with pytest.raises(SourceUnavailable, match="missed the shared snapshot"):
            waiting.result(10)
