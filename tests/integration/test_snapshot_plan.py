"""Planning a snapshot on real servers: chunks contain every row once, and the position precedes all later changes."""

import json
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, TimeoutError  # noqa: A004 - its own until Python 3.11
from contextlib import closing
from datetime import datetime, timezone

import pytest
from pymysql.err import OperationalError

from dmdelta.binlog.resultset.column_reader import ColumnReader
from dmdelta.engine.snapshot.chunk_reader import read_chunks, read_rows
from dmdelta.errors import ServerChanged, SourceError, StructureChanged, from_wire
from dmdelta.model.mysql_sql import quoted_name
from dmdelta.model.schema import TableSchema
from dmdelta.source.connection import open_connection, query
from dmdelta.source.snapshot.chunk import Chunk, RowPackets, read_chunk
from dmdelta.source.snapshot.key_ranges import key_ranges
from dmdelta.source.snapshot.planner import plan_snapshot, snapshot_end
from tests.support.catalog import structures_of
from tests.support.relaying import endpoint_of
from tests.support.servers import Server

CHUNK = 150
TABLES = {
    "ints": "id INT PRIMARY KEY",
    "pairs": "a VARCHAR(20) CHARACTER SET utf8, b INT, PRIMARY KEY (a, b)",
    "folded": "a CHAR(10) CHARACTER SET latin1 COLLATE latin1_swedish_ci, b VARBINARY(9), PRIMARY KEY (b, a)",
    "times": "a DATETIME(3), b DECIMAL(9,3), c DATE, PRIMARY KEY (a, b, c)",
    "wide": "a VARCHAR(20) CHARACTER SET gbk PRIMARY KEY",
    "states": "a ENUM('x','y') PRIMARY KEY",
    "keyless": "a INT",
}
PIECES = ["a", "B", "Ä", "é", "ß", "z ", "y'", "\\", "Z", "%"]


@pytest.fixture(params=["mysql80", "mysql57", "mariadb"])
def server(request: pytest.FixtureRequest) -> Server:
    return request.getfixturevalue(request.param)


@pytest.fixture
def database(server: Server) -> str:
    """Tables with keys of many kinds, some hundred rows each."""
    name = server.fresh_database("plan")
    rng = random.Random(5)
    rows = range(700)

    def text(size: int, pieces: list[str]) -> str:
        return "".join(rng.choice(pieces) for _ in range(size))

    values = {
        "ints": [(rng.randrange(-(2**31), 2**31),) for _ in rows],
        "pairs": [(text(3, [*PIECES, "中"]), rng.randrange(50)) for _ in rows],
        "folded": [(text(3, PIECES), rng.randbytes(2)) for _ in rows],
        "times": [
            (f"2020-01-{n % 28 + 1:02d} 10:00:00.{n:03d}", rng.randrange(9999) / 1000, "2021-01-01") for n in rows
        ],
        "wide": [(text(7, ["中", "国", "a", "人", "b"]),) for _ in rows],
        "states": [("x",), ("y",)],
        "keyless": [(n % 9,) for n in rows],
    }
    with server.connect(database=name, autocommit=True) as connection, connection.cursor() as cursor:
        for table, columns in TABLES.items():
            cursor.execute(f"CREATE TABLE {table} ({columns})")
            marks = ", ".join(["%s"] * len(values[table][0]))
            cursor.executemany(f"INSERT IGNORE INTO {table} VALUES ({marks})", values[table])
    return name


def test_ranges_hold_every_row_once(server: Server, database: str) -> None:
    """Integers, text of several collations, bytes, dates and decimals: the ranges' rows together are the table."""
    with closing(open_connection(endpoint_of(server))) as connection:
        for schema in structures_of(server, database):
            name = quoted_name(database, schema.table)
            ((rows,),) = query(connection, f"SELECT count(*) FROM {name}")
            conditions = key_ranges(connection, schema, rows, CHUNK)
            counts = [
                query(connection, f"SELECT count(*) FROM {name} WHERE {one or 'TRUE'}")[0][0] for one in conditions
            ]
            assert sum(counts) == rows, schema.table
            if schema.table in ("states", "keyless"):
                assert conditions == [""]
            else:
                assert len(conditions) > 2, schema.table
                assert max(counts) <= 2 * CHUNK, schema.table


def test_a_plan_has_every_table_and_begins_at_the_position_of_the_readers(server: Server, database: str) -> None:
    """Nothing is committed in between: the plan and the reads have the position of the log's end."""
    plan = plan_snapshot(endpoint_of(server), lambda schema, _: schema == database)
    assert {chunk.schema.table for chunk in plan.chunks} == set(TABLES)
    assert [chunk.number for chunk in plan.chunks] == list(range(1, len(plan.chunks) + 1))
    end = snapshot_end(endpoint_of(server))
    assert (plan.begin.binlog_file, plan.begin.offset) == (end.binlog_file, end.offset)
    assert plan.begin.gtid_set == end.gtid_set


def test_a_table_without_a_key_is_read_at_one_position(server: Server, database: str) -> None:
    """The reader waits for an open transaction of a writer; then it reads committed rows, with the position."""
    (schema,) = (found for found in structures_of(server, database) if found.table == "keyless")
    before = snapshot_end(endpoint_of(server))
    with (
        ThreadPoolExecutor(1) as reader,
        server.connect(database=database, autocommit=False) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("INSERT INTO keyless VALUES (77)")
        reading = reader.submit(read_all, server, schema)
        with pytest.raises(TimeoutError):
            reading.result(1.0)
        connection.commit()
        rows, position = reading.result(20.0)
    assert rows == 701
    assert position.offset > before.offset
    assert (position.binlog_file, position.offset) == snapshot_place(server)


@pytest.fixture
def of_level(server: Server) -> Iterator[Callable[[str], None]]:
    """Sets the isolation level that new sessions of the server have; the default one after the test."""
    statement = "SET GLOBAL TRANSACTION ISOLATION LEVEL {}"
    try:
        yield lambda level: server.execute(statement.format(level))
    finally:
        server.execute(statement.format("REPEATABLE READ"))


def test_an_uncommitted_row_is_not_read(server: Server, database: str, of_level: Callable[[str], None]) -> None:
    """A chunk has committed rows only, also on a server whose sessions read uncommitted ones by default."""
    (schema,) = (found for found in structures_of(server, database) if found.table == "states")
    of_level("READ UNCOMMITTED")
    with (
        closing(server.connect(database=database, autocommit=False)) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("DELETE FROM states WHERE a = 'x'")
        rows, _ = read_all(server, schema)
        connection.rollback()
    assert rows == 2


def test_a_chunk_does_not_block_writers(server: Server, database: str, of_level: Callable[[str], None]) -> None:
    """Rows that are being read can be changed, also on a server whose sessions lock what they read by default."""
    (schema,) = (found for found in structures_of(server, database) if found.table == "states")
    of_level("SERIALIZABLE")
    parts = read_chunk(endpoint_of(server), Chunk(1, schema), server.flavor)
    next(parts)
    next(parts)
    server.execute("SET SESSION innodb_lock_wait_timeout = 1", "DELETE FROM states WHERE a = 'x'", database=database)
    assert list(parts) == []


def test_a_table_that_is_gone_is_an_error_with_its_name(server: Server, database: str) -> None:
    """It is dropped between planning and reading."""
    (schema,) = (found for found in structures_of(server, database) if found.table == "ints")
    server.execute("DROP TABLE ints", database=database)
    with pytest.raises(SourceError, match="ints"):
        read_all(server, schema)


def test_a_chunk_of_another_server_is_refused(server: Server, database: str) -> None:
    """The positions of the plan mean nothing in its log: none of its rows are returned."""
    plan = plan_snapshot(endpoint_of(server), lambda schema, table: schema == database and table in ("ints", "keyless"))
    options = {
        "endpoint-secret": json.dumps(endpoint_of(server).to_dict()),
        "flavor": server.flavor,
        "source-id": "s",
        "epoch": "1",
        "landed-at": datetime.now(timezone.utc).isoformat(),
        "rows": "true",
        "server-uuid": plan.server.uuid,
    }
    for chunk in plan.chunks:
        for read in (read_chunks, read_rows):
            assert sum(batch.num_rows for batch in read([chunk], options)) >= 600
            with pytest.raises(RuntimeError) as caught:
                next(read([chunk], {**options, "server-uuid": "another"}))
            assert isinstance(from_wire(str(caught.value)), ServerChanged)


@pytest.mark.parametrize(
    "action",
    [
        "MODIFY e ENUM('b','c','a')",
        "MODIFY e ENUM('a','b','c')",
        "CONVERT TO CHARACTER SET utf8mb4",
        "MODIFY i BIGINT",
        "MODIFY d DECIMAL(9,4)",
        "DROP COLUMN i",
        "CHANGE i j INT, CHANGE j i INT",
        "DROP PRIMARY KEY",
        "DROP PRIMARY KEY, ADD PRIMARY KEY (id, i)",
    ],
)
def test_a_table_that_was_changed_is_an_error_with_its_name(server: Server, database: str, action: str) -> None:
    """It no longer has the planned structure when a chunk is read: its rows would be decoded wrongly."""
    schema = alterable(server, database)
    server.execute(f"ALTER TABLE alterable {action}", database=database)
    with pytest.raises(StructureChanged, match=rf"{database}\.alterable was changed") as changed:
        read_all(server, schema)
    assert "--remove-meta" in (changed.value.hint or "")


@pytest.mark.parametrize(
    ("action", "named"),
    [("ADD COLUMN k INT NOT NULL DEFAULT 5", r"k \(new\)"), ("MODIFY a INT NOT NULL, ADD PRIMARY KEY (a)", "its key")],
)
def test_a_table_without_a_key_that_was_changed_is_an_error(
    server: Server, database: str, action: str, named: str
) -> None:
    """Its log continues after the rows, so silver would not follow the statement."""
    server.execute("CREATE TABLE plain (a INT)", "INSERT INTO plain VALUES (1)", database=database)
    (schema,) = (found for found in structures_of(server, database) if found.table == "plain")
    rows, _ = read_all(server, schema)
    assert rows == 1
    server.execute(f"ALTER TABLE plain {action}", database=database)
    with pytest.raises(StructureChanged, match=rf"{database}\.plain was changed .*: {named}\n"):
        read_all(server, schema)


@pytest.mark.parametrize(
    "action",
    ["ADD COLUMN k INT", "ADD COLUMN k INT AFTER id", "MODIFY c VARCHAR(50) CHARACTER SET latin1", "ADD KEY (i)"],
)
def test_a_table_that_was_changed_without_effect_on_its_values(server: Server, database: str, action: str) -> None:
    """The planned columns are read as they were."""
    schema = alterable(server, database)
    server.execute(f"ALTER TABLE alterable {action}", database=database)
    rows, _ = read_all(server, schema)
    assert rows == 2


def test_a_table_keeps_its_structure_while_it_is_read(server: Server, database: str) -> None:
    """An ALTER TABLE waits until the last row of the chunk is read."""
    schema = alterable(server, database)
    parts = read_chunk(endpoint_of(server), Chunk(1, schema), server.flavor)
    next(parts)
    next(parts)
    alter = "ALTER TABLE alterable MODIFY e ENUM('b','c','a')"
    with pytest.raises(OperationalError, match="Lock wait timeout"):
        server.execute("SET SESSION lock_wait_timeout = 1", alter, database=database)
    assert list(parts) == []
    server.execute(alter, database=database)


def alterable(server: Server, database: str) -> TableSchema:
    """A table with two rows, in its present structure."""
    columns = "id INT PRIMARY KEY, e ENUM('a','b'), c VARCHAR(9) CHARACTER SET latin1, d DECIMAL(5,2), i INT, j INT"
    server.execute(
        f"CREATE TABLE alterable ({columns})",
        "INSERT INTO alterable VALUES (1, 'a', 'x', 1.5, 1, 2), (2, 'b', 'y', 2.5, 3, 4)",
        database=database,
    )
    (schema,) = (found for found in structures_of(server, database) if found.table == "alterable")
    return schema


def read_all(server: Server, schema: TableSchema):
    """How many rows a chunk of the whole table has, and its position."""
    position, *parts = read_chunk(endpoint_of(server), Chunk(1, schema), server.flavor)
    reader = ColumnReader(schema)
    for part in parts:
        assert isinstance(part, RowPackets)
        reader.read(part.data, part.end)
    return reader.rows, position


def snapshot_place(server: Server) -> tuple[str, int]:
    end = snapshot_end(endpoint_of(server))
    return (end.binlog_file, end.offset)
