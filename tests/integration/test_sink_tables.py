"""The sink's tables on real servers: columns that a route extracts, columns of a reload, rows that a reload replaces."""

import pytest

from dmdelta.errors import Fenced, SinkError
from dmdelta.model.schema import Column, TableSchema
from dmdelta.rules import Route
from dmdelta.sink.target import emptying
from dmdelta.sink.target.connection import session
from dmdelta.sink.target.emptying import empty_table
from dmdelta.sink.target.metadata import Metadata
from dmdelta.sink.target.tables import Tables
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
    older, newer = (Metadata(f"dm_{database}", "task", "s1", run) for run in ("older", "newer"))
    for metadata in (older, newer):
        with session(server) as connection:
            metadata.create(connection)
            metadata.take_over(connection, 1)
    with pytest.raises(Fenced):
        empty_table(server, older, table, own)
    assert target.query("SELECT count(*) FROM t", database) == ((10,),)
    empty_table(server, newer, table, own)
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
