"""Tables of the target that differ from the source's: columns, keys, foreign keys, several tables in one."""

from dataclasses import replace

import pytest

from dmdelta.config.routes import ExtractTable, RouteRule
from dmdelta.errors import SinkError
from dmdelta.rules import Routes
from dmdelta.sink.settings import SinkSettings
from tests.support.sinking import Sinking, table_differences, target_of


@pytest.fixture(
    params=[
        "mysql80_too",
        pytest.param("mariadb", marks=pytest.mark.long),
        pytest.param("tidb", marks=pytest.mark.tidb),
    ]
)
def target(request):
    return request.getfixturevalue(request.param)


def sinking_to(target, mysql80, spark, folder, prefix, **server):
    """A sink of a fresh database; its name."""
    database = mysql80.fresh_database(prefix)
    settings = SinkSettings(replace(target_of(target), **server), f"dm_{database}", 8, 2, flush_interval=1.0)
    return database, Sinking(spark, folder, mysql80, [database], settings)


def bring(sinking):
    sinking.land()
    sinking.run()


SOURCE = "CREATE TABLE {} (id INT PRIMARY KEY, name VARCHAR(20) NOT NULL, n INT)"
OTHERS = {
    "more": "CREATE TABLE more (own INT DEFAULT 7, n BIGINT, name VARCHAR(90) NOT NULL, id BIGINT PRIMARY KEY, "
    "at TIMESTAMP DEFAULT CURRENT_TIMESTAMP)",
    "surrogate": "CREATE TABLE surrogate (pk BIGINT AUTO_INCREMENT PRIMARY KEY, id INT NOT NULL, name VARCHAR(20), n INT, "
    "UNIQUE (id))",
    "by_name": "CREATE TABLE by_name (id INT, name VARCHAR(20) COLLATE utf8mb4_bin PRIMARY KEY, n INT)",
    "foreign_part": "CREATE TABLE foreign_part (region CHAR(2) DEFAULT 'eu', id INT, name VARCHAR(20), n INT, "
    "PRIMARY KEY (region, id))",
    "keyless": "CREATE TABLE keyless (id INT, name VARCHAR(20), n INT)",
    "stricter": "CREATE TABLE stricter (id INT PRIMARY KEY, name VARCHAR(20), n INT, UNIQUE (name, n))",
    "computed": "CREATE TABLE computed (id INT PRIMARY KEY, name VARCHAR(20), n INT GENERATED ALWAYS AS (id * 2) STORED)",
}
"""Tables created by hand in the target for the source's tables of these names."""


def test_columns_and_keys_of_the_targets_own(mysql80, target, spark, tmp_path):
    """Rows are found by the target's key, or by all columns without one; columns of its own are not changed."""
    database, sinking = sinking_to(target, mysql80, spark, tmp_path, "other")
    target.execute(f"CREATE DATABASE {database}")
    target.execute(*OTHERS.values(), database=database)
    target.execute("INSERT INTO more (id, name, own) VALUES (77, 'mine', 1)", database=database)
    for table in OTHERS:
        rows = ", ".join(f"({number}, 'n{number}', {number * 2})" for number in range(20))
        mysql80.execute(SOURCE.format(table), f"INSERT INTO {table} VALUES {rows}", database=database)
    bring(sinking)
    for table in OTHERS:
        mysql80.execute(
            f"UPDATE {table} SET name = concat('m', id) WHERE id < 9",
            f"UPDATE {table} SET n = (id + 100) * 2, id = id + 100 WHERE id BETWEEN 5 AND 7",
            f"UPDATE {table} SET name = 'between' WHERE id = 10",
            f"UPDATE {table} SET name = 'n10' WHERE id = 11",
            f"UPDATE {table} SET name = 'n11' WHERE id = 10",
            f"DELETE FROM {table} WHERE id IN (1, 12, 105)",
            f"INSERT INTO {table} VALUES (12, 'again', 24)",
            database=database,
        )
    bring(sinking)
    own = target.query("SELECT name, own, n FROM more WHERE id = 77", database)
    assert own == (("mine", 1, None),)
    target.execute("DELETE FROM more WHERE id = 77", database=database)
    assert [line for table in OTHERS for line in table_differences(mysql80, target, database, table)] == []
    assert set(target.query("SELECT own, at IS NULL FROM more", database)) == {(7, 0)}


@pytest.mark.parametrize("safe", [False, pytest.param(True, marks=pytest.mark.long)], ids=["plain", "safe"])
def test_foreign_keys_that_change_rows(mysql80, target, spark, tmp_path, safe):
    """Where the target checks foreign keys it cascades, as the source did without logging it.

    Rows that such a cascade deletes are inserted again under another parent, not before it. In safe mode, which deletes
    rows to replace them, no others are deleted; all of it may be executed again.
    """
    database, sinking = sinking_to(target, mysql80, spark, tmp_path, "cascade", foreign_key_checks=True)
    sinking.settings = replace(sinking.settings, safe_mode=safe)
    rows = ", ".join(f"({number}, 0)" for number in range(60))
    links = ", ".join(f"({number}, {number})" for number in range(60))
    mysql80.execute(
        "CREATE TABLE parent (id INT PRIMARY KEY, n INT)",
        "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) "
        "ON DELETE CASCADE ON UPDATE CASCADE)",
        "CREATE TABLE grandchild (id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES child (id))",
        f"INSERT INTO parent VALUES {rows}, (100, 0)",
        f"INSERT INTO child VALUES {links}",
        f"INSERT INTO grandchild VALUES {links}",
        database=database,
    )
    bring(sinking)
    for number in range(0, 60, 2):
        mysql80.execute(
            f"DELETE FROM grandchild WHERE id = {number}",
            f"DELETE FROM parent WHERE id = {number}",
            f"INSERT INTO child VALUES ({number}, 100)",
            "UPDATE parent SET n = n + 1 WHERE id = 100",
            f"UPDATE parent SET id = {number + 1000} WHERE id = {number + 1}",
            f"INSERT INTO grandchild VALUES ({number}, {number})",
            database=database,
        )
    bring(sinking)
    if safe:
        target.execute(f"DROP DATABASE {sinking.settings.metadata}")
        sinking.run()
    tables = ("parent", "child", "grandchild")
    assert [line for table in tables for line in table_differences(mysql80, target, database, table)] == []
    assert target.query("SELECT count(*) FROM child", database) == ((60,),)


def shards_to(target, mysql80, spark, folder, *, name_column=False):
    """A sink that merges the tables t_1 and t_2 of a fresh database into `both`."""
    database, sinking = sinking_to(target, mysql80, spark, folder, "shards")
    column = ExtractTable(table_regexp="_([0-9]+)$", target_column="shard") if name_column else None
    route = RouteRule(
        schema_pattern=database,
        table_pattern="t_*",
        target_schema=database,
        target_table="both",
        extract_table=column,
    )
    sinking.rules = replace(sinking.rules, routes=Routes.from_config({"both": route}))
    return database, sinking


def both(server, database, columns):
    """The rows of both shards at the source."""
    one, other = (f"SELECT {columns} FROM t_{number}" for number in (1, 2))
    return server.query(f"{one} UNION ALL {other} ORDER BY id", database)


def test_statements_of_shards(mysql80, target, spark, tmp_path):
    """Each shard's statement is executed unless the target has its effect; none empties, drops or renames the others."""
    database, sinking = shards_to(target, mysql80, spark, tmp_path)
    made = "CREATE TABLE t_{} (id INT PRIMARY KEY, v VARCHAR(20), gone INT)"
    add = "ALTER TABLE t_{} ADD COLUMN c INT DEFAULT 5, ADD INDEX by_c (c)"
    mysql80.execute(
        made.format(1),
        "INSERT INTO t_1 VALUES (1, 'a', 1), (3, 'c', 3)",
        made.format(2),
        "INSERT INTO t_2 VALUES (2, 'b', 2), (4, 'd', 4)",
        add.format(1),
        "UPDATE t_2 SET v = 'as it was' WHERE id = 2",
        "INSERT INTO t_1 VALUES (5, 'e', 5, 50)",
        "INSERT INTO t_2 VALUES (6, 'f', 6)",
        add.format(2),
        "UPDATE t_2 SET c = 60 WHERE id = 6",
        "ALTER TABLE t_1 DROP COLUMN gone",
        "ALTER TABLE t_2 DROP COLUMN gone",
        "INSERT INTO t_2 VALUES (8, 'h', 80)",
        database=database,
    )
    bring(sinking)
    assert target.query("SELECT id, v, c FROM `both` ORDER BY id", database) == both(mysql80, database, "id, v, c")
    assert [name for (name,) in target.query("SHOW TABLES", database)] == ["both"]
    mysql80.execute(
        "TRUNCATE TABLE t_1", "ALTER TABLE t_1 ADD e INT, RENAME TO left_1", "DROP TABLE t_2", database=database
    )
    bring(sinking)
    assert target.query("SELECT count(*), count(e) FROM `both`", database) == ((7, 0),)
    assert [name for (name,) in target.query("SHOW TABLES", database)] == ["both"]


def test_a_shard_that_still_has_a_dropped_column(mysql80, target, spark, tmp_path):
    """A shard drops a column that the other still writes: the error has position, column and a sufficient next step."""
    database, sinking = shards_to(target, mysql80, spark, tmp_path)
    made = "CREATE TABLE t_{} (id INT PRIMARY KEY, gone INT)"
    mysql80.execute(
        *(made.format(number) for number in (1, 2)),
        "INSERT INTO t_1 VALUES (1, 1)",
        "ALTER TABLE t_1 DROP COLUMN gone",
        "INSERT INTO t_2 VALUES (2, 2)",
        "ALTER TABLE t_2 DROP COLUMN gone",
        "INSERT INTO t_1 VALUES (3)",
        database=database,
    )
    sinking.land()
    with pytest.raises(SinkError, match=rf"table {database}\.both has no column gone") as refused:
        sinking.run()
    assert "position=1/binlog." in str(refused.value)
    assert "add it with the definition" in (refused.value.hint or "")
    target.execute("ALTER TABLE `both` ADD gone INT", database=database)
    sinking.run()
    assert target.query("SELECT id FROM `both` ORDER BY id", database) == ((1,), (2,), (3,))


def test_shards_with_the_same_keys(mysql80, target, spark, tmp_path):
    """A table created in the target with the shard's number in its key takes both shards' rows of the same key."""
    database, sinking = shards_to(target, mysql80, spark, tmp_path, name_column=True)
    target.execute(f"CREATE DATABASE {database}")
    target.execute("CREATE TABLE `both` (shard VARCHAR(9), id INT, v INT, PRIMARY KEY (shard, id))", database=database)
    for number in (1, 2):
        mysql80.execute(
            f"CREATE TABLE t_{number} (id INT PRIMARY KEY, v INT)",
            f"INSERT INTO t_{number} VALUES (1, {number}), (2, {number}), (3, {number})",
            f"UPDATE t_{number} SET v = 9 WHERE id = {number}",
            "DELETE FROM t_1 WHERE id = 3",
            database=database,
        )
    bring(sinking)
    rows = target.query("SELECT shard, id, v FROM `both` ORDER BY shard, id", database)
    assert rows == (("1", 1, 9), ("1", 2, 1), ("2", 1, 2), ("2", 2, 9), ("2", 3, 2))
