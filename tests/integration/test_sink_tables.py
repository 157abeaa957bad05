"""The sink's tables on real servers: columns that a route extracts, columns of a reload, rows that a reload replaces."""

from concurrent.futures import ThreadPoolExecutor

import pymysql
import pytest

from dmdelta.errors import Fenced, SinkError, TargetUnavailable
from dmdelta.model.schema import Column, TableSchema
from dmdelta.rules import Route
from dmdelta.sink.target import emptying
from dmdelta.sink.target import tables as statements
from dmdelta.sink.target.connection import session
from dmdelta.sink.target.emptying import empty_table
from dmdelta.sink.target.metadata import Metadata
from dmdelta.sink.target.tables import Tables
from dmdelta.sink.target.target_session import TargetSession
from tests.support.sharding import wait_until
from tests.support.sinking import target_of

SHARD = TableSchema("d", "t_1", (Column("id", "int"), Column("name", "varchar", length=80, charset="utf8mb4")), ("id",))


@pytest.fixture(params=["mysql80_too", "mariadb", pytest.param("tidb", marks=[pytest.mark.tidb, pytest.mark.long])])
def target(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def database(target):
    name = target.fresh_database("tables")
    target.execute("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20), UNIQUE (name))", database=name)
    return name


def owner(server, database, run):
    """The tables of a sink that takes over."""
    metadata = Metadata(f"dm_{database}", "task", "s1", run)
    with session(server) as connection:
        metadata.create(connection)
        metadata.take_over(connection, 1)
    return metadata


def plan(target, database, **options):
    tables = Tables(target_of(target))
    route = Route(database, "t", (("shard", "1"), ("place", "eu")), merged=True)
    try:
        return tables.plan(("d", "t_1"), 1, SHARD, route, **options)
    finally:
        tables.close()


def test_an_empty_table_gets_the_columns_that_a_route_extracts(target, database):
    """The source's CREATE TABLE lacks them. They distinguish rows with the same keys."""
    found = plan(target, database)
    assert found.shape.columns == "(`id`,`name`,`shard`,`place`)".replace(",", ", ")
    assert found.shape.identity == "(`id`, `shard`, `place`)"
    target.execute("INSERT INTO t VALUES (1, 'a', '1', 'eu'), (1, 'a', '2', 'eu')", database=database)
    assert plan(target, database).shape == found.shape


def test_a_timestamp_of_the_key_gets_another_precision(target, database):
    """Bronze has NULL for each TIMESTAMP that the source's session lets be NULL; those of the target's key may not."""
    target.execute(
        "CREATE TABLE u (id INT, ts TIMESTAMP NOT NULL DEFAULT '2026-01-01', b TIMESTAMP NULL, PRIMARY KEY (id, ts))",
        database=database,
    )
    tables = Tables(target_of(target))
    name = f"`{database}`.`u`"
    try:
        tables.change(f"ALTER TABLE {name} MODIFY b TIMESTAMP(3) NULL, MODIFY ts TIMESTAMP(6) NULL", in_doubt=False)
    finally:
        tables.close()
    query = "SELECT column_name, datetime_precision, is_nullable FROM information_schema.columns WHERE table_schema = '{}' AND table_name = 'u' AND column_name <> 'id' ORDER BY column_name"
    assert [tuple(row) for row in target.query(query.format(database))] == [("b", 3, "YES"), ("ts", 6, "NO")]


@pytest.mark.parametrize("target", ["mysql80_too", "mariadb"], indirect=True)
def test_a_statement_of_which_the_target_has_a_part(target, database):
    """It lacks an index and a foreign key, and has a column: the other actions are executed, in doubt or not."""
    target.execute(
        "CREATE TABLE part (id INT AUTO_INCREMENT PRIMARY KEY, parent INT, d DATETIME(6), was INT, c INT)",
        "INSERT INTO part (parent, d, was) VALUES (1, '2026-01-01 12:00:00.600000', 7)",
        database=database,
    )
    tables, name = Tables(target_of(target)), f"`{database}`.`part`"
    actions = (
        "DROP COLUMN parent, DROP FOREIGN KEY fk, DROP INDEX by_d, MODIFY d DATETIME(0), CHANGE was now BIGINT, "
        "ADD (c INT, e INT DEFAULT 5), ADD INDEX (e), DROP PRIMARY KEY, ADD PRIMARY KEY (id, now), ALGORITHM=COPY"
    )
    try:
        for in_doubt in (False, True):
            tables.change(f"ALTER TABLE {name} {actions}", in_doubt=in_doubt)
        with pytest.raises(SinkError, match="cannot be executed one by one"):
            tables.change(
                f"ALTER TABLE {name} DROP INDEX i, RENAME COLUMN now TO e, RENAME COLUMN e TO now", in_doubt=False
            )
    finally:
        tables.close()
    query = "SELECT column_name, column_key, datetime_precision FROM information_schema.columns WHERE table_schema = '{}' AND table_name = 'part' ORDER BY ordinal_position"
    columns = [tuple(row) for row in target.query(query.format(database))]
    assert columns == [("id", "PRI", None), ("d", "", 0), ("now", "PRI", None), ("c", "", None), ("e", "MUL", None)]
    assert target.query("SELECT id, now, c, e FROM part", database) == ((1, 7, None, 5),)
    assert {row[2] for row in target.query("SHOW INDEX FROM part", database)} == {"PRIMARY", "e"}


@pytest.mark.parametrize("target", ["mysql80_too", "mariadb"], indirect=True)
def test_what_a_second_execution_would_change(target, database):
    """After a crash, a constraint without a name is not added twice; for another shard, later changes stay."""
    target.execute("CREATE TABLE again (id INT PRIMARY KEY, v VARCHAR(50), d INT)", database=database)
    tables, name = Tables(target_of(target)), f"`{database}`.`again`"
    try:
        for in_doubt in (False, True):
            tables.change(f"ALTER TABLE {name} ADD b INT, ADD CHECK (b > 0)", in_doubt=in_doubt)
        tables.change(f"ALTER TABLE {name} ADD INDEX i (v) /*!80000 INVISIBLE */, ADD b INT", in_doubt=False)
        for action in ("MODIFY v VARCHAR(20)", "DROP COLUMN d"):
            tables.change(f"ALTER TABLE {name} {action}, ADD INDEX i (v)", in_doubt=False, shared=True)
        swap = f"ALTER TABLE {name} DROP INDEX i, RENAME INDEX j TO i"
        target.execute("ALTER TABLE again ADD INDEX j (b)", database=database)
        for in_doubt in (False, True):
            tables.change(swap, in_doubt=in_doubt)
    finally:
        tables.close()
    query = "SELECT column_name, character_maximum_length FROM information_schema.columns WHERE table_schema = '{}' AND table_name = 'again' ORDER BY ordinal_position"
    columns = [tuple(row) for row in target.query(query.format(database))]
    assert columns == [("id", None), ("v", 50), ("d", None), ("b", None)]
    checks = "SELECT count(*) FROM information_schema.table_constraints WHERE table_schema = '{}' AND table_name = 'again' AND constraint_type = 'CHECK'"
    assert target.query(checks.format(database)) == ((1,),)
    assert {(row[2], row[4]) for row in target.query("SHOW INDEX FROM again", database)} == {
        ("PRIMARY", "id"),
        ("i", "b"),
    }


def test_a_table_with_rows_must_have_the_columns(target, database):
    """Its rows have no value for them: the error names the column."""
    target.execute("INSERT INTO t VALUES (1, 'a')", database=database)
    with pytest.raises(SinkError, match=r"t has no column shard"):
        plan(target, database)
    assert "`shard`" in plan(target, database, reloaded=True).shape.columns


@pytest.mark.parametrize(("own", "left"), [("", 0), ("id > 5", 5)])
def test_rows_are_deleted_in_transactions(target, database, own, left, monkeypatch):
    """Also rows that others reference; a run that was replaced by another one deletes none."""
    monkeypatch.setattr(emptying, "ROWS", 3)
    target.execute(
        "CREATE TABLE child (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES t (id) ON DELETE CASCADE)",
        *(f"INSERT INTO t VALUES ({number + 1}, {number})" for number in range(10)),
        "INSERT INTO child VALUES (1, 6)",
        database=database,
    )
    server, table = target_of(target), f"`{database}`.`t`"
    older, newer = owner(server, database, "older"), owner(server, database, "newer")
    with pytest.raises(Fenced):
        empty_table(TargetSession(server), older, table, own)
    assert target.query("SELECT count(*) FROM t", database) == ((10,),)
    empty_table(TargetSession(server), newer, table, own)
    assert target.query("SELECT count(*) FROM t", database) == ((left,),)
    assert target.query("SELECT count(*) FROM child", database) == ((1,),)


def test_the_target_records_what_it_was_reloaded_from(target, database):
    """By table, the newest snapshot only; a target of an earlier release has none."""
    server, metadata = target_of(target), Metadata(f"dm_{database}", "task", "s1", "run")
    with session(server) as connection:
        assert metadata.read_reloaded(connection) == {}
        metadata.create(connection)
        metadata.take_over(connection, 1)
        metadata.mark_reloaded(connection, {("d", "t"): -1, ("d", "u"): -1})
        metadata.mark_reloaded(connection, {("d", "t"): -2})
    with session(server) as connection:
        assert metadata.read(connection).reloaded == {("d", "t"): -2, ("d", "u"): -1}


@pytest.mark.parametrize("taken_over", [True, False])
def test_a_statement_whose_answer_is_lost(target, database, monkeypatch, taken_over):
    """The sink that owns the target repeats it; another one would delete rows that its successor has written."""
    server, original, lost = target_of(target), statements.execute, []
    tables = Tables(server, owner(server, database, "older"))
    target.execute("INSERT INTO t VALUES (1, 'a')", database=database)

    def lose(connection, sql):
        original(connection, sql)
        if not lost:
            lost.append(sql)
            if taken_over:
                owner(server, database, "newer")
            target.execute("INSERT INTO t VALUES (2, 'b')", database=database)
            raise pymysql.err.OperationalError(2013, "Lost connection to MySQL server during query")

    monkeypatch.setattr(statements, "execute", lose)
    truncate = f"TRUNCATE TABLE `{database}`.`t`"
    try:
        if taken_over:
            with pytest.raises(Fenced):
                tables.change(truncate, in_doubt=False)
        else:
            tables.change(truncate, in_doubt=False)
    finally:
        tables.close()
    assert target.query("SELECT id FROM t", database) == (((2,),) if taken_over else ())


@pytest.mark.parametrize("server_name", ["mysql80_too", pytest.param("mariadb", marks=pytest.mark.long)])
def test_a_statement_that_hangs_is_cut_off(request, server_name):
    """A table is in use: the sink's thread ends, and its successor's rows stay when the table is free again."""
    target = request.getfixturevalue(server_name)
    server, name = target_of(target), target.fresh_database("hanging")
    target.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", database=name)
    older, truncate = Tables(server, owner(server, name, "older")), f"TRUNCATE TABLE `{name}`.`t`"
    waiting = (
        f"SELECT count(*) FROM information_schema.processlist WHERE info = '{truncate}' AND state LIKE '%metadata%'"
    )
    with target.connect(database=name, autocommit=False) as other, other.cursor() as cursor:
        cursor.execute("SELECT * FROM t")
        with ThreadPoolExecutor(1) as pool:
            changing = pool.submit(older.change, truncate, in_doubt=False)
            wait_until(lambda: target.query(waiting)[0][0] == 1, 30)
            older.cut_off()
            with pytest.raises(TargetUnavailable):
                changing.result(30)
        newer = Tables(server, owner(server, name, "newer"))
        other.rollback()
    newer.change(truncate, in_doubt=True)
    newer.close()
    target.execute("INSERT INTO t VALUES (2)", database=name)
    with pytest.raises(TargetUnavailable):
        older.change(truncate, in_doubt=True)
    assert target.query("SELECT id FROM t", name) == ((2,),)


@pytest.mark.parametrize(
    "change", ["ADD UNIQUE u (called)", "MODIFY called VARCHAR(3)", "MODIFY called INT", "MODIFY called DATETIME"]
)
def test_an_error_about_a_statement_shows_no_values(target, database, change):
    """The rows of the table do not allow it: the server quotes one of their values, the sink's error does not."""
    target.execute(
        "CREATE TABLE people (id INT PRIMARY KEY, called VARCHAR(80))",
        "INSERT INTO people VALUES (1, 'alice@example.com'), (2, 'alice@example.com')",
        database=database,
    )
    tables = Tables(target_of(target))
    try:
        with pytest.raises(SinkError) as caught:
            tables.change(f"ALTER TABLE `{database}`.`people` {change}", in_doubt=False)
    finally:
        tables.close()
    assert "alice" not in str(caught.value)
    assert change in caught.value.message
