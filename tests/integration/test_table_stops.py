"""A statement that silver cannot follow stops its table alone."""

import re

import pytest

from dmdelta.cli.main import execute
from dmdelta.errors import SchemaError
from dmdelta.lakehouse.layout import Lakehouse
from tests.support.diff import assert_same
from tests.support.pipeline import Pipeline
from tests.support.recording import record
from tests.support.task import Task


def test_the_others_continue_and_a_snapshot_repairs_it(mysql80, spark, tmp_path):
    """The run reports it at its end; the table stays before the statement until it is read again."""
    database = mysql80.fresh_database("stops")
    task = Task(tmp_path, mysql80, database)
    task.start_here()
    for table in ("t", "u"):
        mysql80.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, a INT)", database=database)
        mysql80.execute(f"INSERT INTO {table} VALUES (1, 1), (2, 2)", database=database)
    task.catch_up()
    mysql80.execute("ALTER TABLE t ADD c TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6)", database=database)
    for table in ("t", "u"):
        mysql80.execute(f"INSERT INTO {table} (id, a) VALUES (3, 3)", database=database)
    lakehouse = Lakehouse(root=str(task.root))

    def silver(table):
        return spark.table(lakehouse.silver(database, table))

    with task.environment():
        for _ in range(2):
            assert execute(["run", str(task.write_spec()), "--until-caught-up"]) == SchemaError.exit_code
            assert_same(mysql80, database, ["u"], silver)
            assert (silver("t").count(), "c" in silver("t").columns) == (2, False)
            mysql80.execute("DELETE FROM u WHERE id = 1", database=database)
        assert execute(["snapshot", str(task.spec), f"--table={database}.t"]) == 0
    mysql80.execute("UPDATE t SET a = 9 WHERE id = 1", database=database)
    task.catch_up()
    assert_same(mysql80, database, ["t", "u"], silver)


@pytest.mark.long
def test_both_tables_of_an_exchange_stop(mysql80, spark, tmp_path):
    """A table without rows, too: the log does not contain the rows that it gets; a snapshot of each repairs them."""
    database = mysql80.fresh_database("stops")
    task = Task(tmp_path, mysql80, database)
    task.start_here()
    for create in (
        "t (id INT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 2",
        "u (id INT PRIMARY KEY)",
        "v (id INT)",
    ):
        mysql80.execute(f"CREATE TABLE {create}", database=database)
    mysql80.execute("INSERT INTO t VALUES (1), (2)", database=database)
    task.catch_up()
    mysql80.execute("ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE u", database=database)
    for table in ("t", "u", "v"):
        mysql80.execute(f"INSERT INTO {table} VALUES (11)", database=database)
    lakehouse = Lakehouse(root=str(task.root))

    def silver(table):
        return spark.table(lakehouse.silver(database, table))

    with task.environment():
        assert execute(["run", str(task.write_spec()), "--until-caught-up"]) == SchemaError.exit_code
        assert_same(mysql80, database, ["v"], silver)
        assert (silver("t").count(), silver("u").count()) == (2, 0)
        for table in ("t", "u"):
            assert execute(["snapshot", str(task.spec), f"--table={database}.{table}"]) == 0
    task.catch_up()
    assert_same(mysql80, database, ["t", "u", "v"], silver)


@pytest.mark.parametrize(
    "statement", ["RENAME TABLE t TO {prod}.t", pytest.param("ALTER TABLE t RENAME {prod}.t", marks=pytest.mark.long)]
)
def test_a_table_that_is_renamed_from_another_database_stops(mysql80, spark, tmp_path, statement):
    """The statement's session is in the other database, so the statement names the table there without a schema."""
    prod, staging = mysql80.fresh_database("prod"), mysql80.fresh_database("staging")
    task = Task(tmp_path, mysql80, prod)
    task.start_here()
    mysql80.execute("CREATE TABLE u (id INT PRIMARY KEY)", "INSERT INTO u VALUES (1)", database=prod)
    task.catch_up()
    mysql80.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)", database=staging)
    mysql80.execute(statement.format(prod=prod), f"INSERT INTO {prod}.t VALUES (3)", database=staging)
    mysql80.execute("INSERT INTO u VALUES (2)", database=prod)
    lakehouse = Lakehouse(root=str(task.root))

    def silver(table):
        return spark.table(lakehouse.silver(prod, table))

    with task.environment():
        assert execute(["run", str(task.write_spec()), "--until-caught-up"]) == SchemaError.exit_code
        assert_same(mysql80, prod, ["u"], silver)
        assert execute(["snapshot", str(task.spec), f"--table={prod}.t"]) == 0
    task.catch_up()
    assert_same(mysql80, prod, ["t", "u"], silver)


@pytest.mark.parametrize(
    ("decision", "columns"),
    [(["skip"], ["id", "a"]), (["replace", "--sql=ALTER TABLE t ADD c TIMESTAMP(6) NULL"], ["id", "a", "c"])],
    ids=["skip", "replace"],
)
def test_an_operator_decides(mysql80, spark, tmp_path, capsys, decision, columns):
    """A statement is skipped or replaced: silver continues with the resulting columns."""
    database = mysql80.fresh_database("stops")
    task = Task(tmp_path, mysql80, database)
    task.start_here()
    mysql80.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT)", "INSERT INTO t VALUES (1, 1)", database=database)
    mysql80.execute("ALTER TABLE t ADD c TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6)", database=database)
    mysql80.execute("INSERT INTO t (id, a) VALUES (2, 2)", "UPDATE t SET a = 3 WHERE id = 2", database=database)
    with task.environment():
        assert execute(["run", str(task.write_spec()), "--until-caught-up"]) == SchemaError.exit_code
        (position,) = set(re.findall(r"position=(\S+?)[,)]", "".join(capsys.readouterr())))
        verb, *statements = decision
        assert execute(["binlog", verb, str(task.spec), f"--position={position}", *statements]) == 0
        assert execute(["binlog", "list", str(task.spec), "--json"]) == 0
        assert f'"position": "{position}"' in capsys.readouterr().out
    task.catch_up()
    silver = spark.table(Lakehouse(root=str(task.root)).silver(database, "t"))
    assert silver.columns[: len(columns)] == columns
    assert {(row["id"], row["a"]) for row in silver.collect()} == {(1, 1), (2, 3)}
    if "c" in columns:
        assert {row["id"] for row in silver.where("c IS NOT NULL").collect()} == {2}


def test_mariadbs_special_tables(mariadb, spark, tmp_path):
    """A table with system versioning stops when it is created; the numbers of sequences land nowhere."""
    database = mariadb.fresh_database("special")
    mariadb.execute(
        "CREATE TABLE plain (id INT PRIMARY KEY)",
        "CREATE TABLE versioned (id INT PRIMARY KEY, a INT) WITH SYSTEM VERSIONING",
        "CREATE TABLE partly (id INT PRIMARY KEY, a INT WITH SYSTEM VERSIONING)",
        "CREATE SEQUENCE numbers",
        *("INSERT INTO versioned VALUES (1, 1)", "UPDATE versioned SET a = 2", "DELETE FROM versioned"),
        *("INSERT INTO partly VALUES (1, 1)", "UPDATE partly SET a = 2", "DELETE FROM partly"),
        "INSERT INTO plain VALUES (NEXTVAL(numbers))",
        database=database,
    )
    pipeline = Pipeline(spark, tmp_path / "lake")
    pipeline.catch_up(record(mariadb, tmp_path / "archive"), "m", [database], flavor="mariadb")
    assert pipeline.refused.keys() == {(database, "versioned"), (database, "partly")}
    assert all("system versioning" in str(error) for error in pipeline.refused.values())
    assert pipeline.differences(mariadb, database, "plain") == []
    landed = {row["table_name"] for row in pipeline.bronze("m").where("op = 'insert'").collect()}
    assert landed == {"plain", "versioned", "partly"}
