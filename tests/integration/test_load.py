"""Sizes at which systems often fail: rows, columns, tables, transactions per second."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from dmdelta.lakehouse.layout import Lakehouse
from tests.support.check import assert_exactly_once, assert_tables_equal_source
from tests.support.memory import catch_up_watched
from tests.support.servers import Server, running
from tests.support.task import Task
from tests.support.wide_tables import WideTable

AS_USERS = ""
"""Java options of a task that generates code, as a user's task does."""
SUMS = "COUNT(*), SUM(id), SUM(n), SUM(s), SUM(CRC32(CONCAT_WS(',', id, n, s)))"
"""The same in MySQL and in Spark."""


@pytest.mark.long
def test_a_transaction_of_ten_million_rows_stays_within_memory(spark, tmp_path):
    """Inserted in one transaction, then a tenth updated in one and a tenth deleted in one: the sums agree."""
    with running("mysql80", innodb_buffer_pool_size="512M", innodb_redo_log_capacity="256M") as server:
        task = Task(tmp_path, server, server.fresh_database("rows"), tables=("t",), jvm_options=AS_USERS)
        task.start_here()
        digits = 7
        number = " + ".join(f"d{place}.d * {10**place}" for place in range(digits))
        # Nested loops, the leading digit outermost: the rows come in the order of their key.
        joined = " STRAIGHT_JOIN ".join(f"digits d{place}" for place in reversed(range(digits)))
        server.execute(
            "CREATE TABLE digits (d INT PRIMARY KEY)",
            f"INSERT INTO digits VALUES {', '.join(f'({digit})' for digit in range(10))}",
            "CREATE TABLE t (id INT NOT NULL PRIMARY KEY, n BIGINT NOT NULL, s SMALLINT NOT NULL)",
            "SET SESSION optimizer_switch = 'block_nested_loop=off'",
            f"INSERT INTO t SELECT {number}, ({number}) * 7919, ({number}) % 1000 FROM {joined}",
            database=task.database,
        )
        assert server.query("SELECT COUNT(*) FROM t", task.database) == ((10**digits,),)
        silver = Lakehouse(root=str(task.root)).silver(task.database, "t")
        for changes in ((), ("UPDATE t SET s = s - 2000 WHERE id % 10 = 3", "DELETE FROM t WHERE id % 10 = 7")):
            server.execute(*changes, database=task.database)
            assert catch_up_watched(task) < 600_000_000
            (sums,) = server.query(f"SELECT {SUMS} FROM t", task.database)
            assert tuple(spark.sql(f"SELECT {SUMS} FROM {silver}").first()) == tuple(map(int, sums))


@pytest.mark.long
@pytest.mark.parametrize(("engine", "columns"), [("InnoDB", 1017), ("MyISAM", 2000)])
def test_a_table_of_very_many_columns(mysql80, spark, tmp_path, engine, columns):
    """It is loaded in full, then followed with full and minimal row images."""
    table = WideTable(engine, columns)
    database = mysql80.fresh_database("wide")
    task = Task(tmp_path, mysql80, database, tables=("wide",), mode="all", jvm_options=AS_USERS)
    mysql80.execute(table.create, *table.changes(0), database=database)
    catch_up_watched(task)
    assert_tables_equal_source(spark, task, ["wide"])
    for first, image in ((10, "FULL"), (20, "MINIMAL")):
        mysql80.execute(
            f"SET SESSION binlog_row_image = {image}",
            *table.changes(first),
            table.update(0, every=7),
            "DELETE FROM wide WHERE id = 1",
            table.insert(1),
            database=database,
        )
        catch_up_watched(task)
        assert_tables_equal_source(spark, task, ["wide"])


COLUMNS = "(id INT NOT NULL PRIMARY KEY, v VARCHAR(20), n DECIMAL(9,2), at DATETIME)"


def create_tables(server: Server, database: str, count: int) -> list[str]:
    """Create so many tables; their names."""
    names = [f"t{number:04d}" for number in range(count)]

    def make(some: Sequence[str]) -> None:
        server.execute(*[f"CREATE TABLE {table} {COLUMNS}" for table in some], database=database)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(make, (names[lane::4] for lane in range(4))))
    return names


def silver_tables(task: Task) -> set[str]:
    return {place.parent.name for place in (task.root / "silver" / task.database).glob("*/_delta_log")}


@pytest.mark.long
@pytest.mark.parametrize("name", ["mysql80", "mysql57", "mariadb"])
def test_idle_tables_cost_nothing(name, spark, tmp_path):
    """Of 5,000 tables in a schema, only written ones get a silver table, and memory is bounded."""
    with running(name, innodb_file_per_table="OFF") as server:
        task = Task(tmp_path, server, server.fresh_database("many"))
        began = time.monotonic()
        names = create_tables(server, task.database, 5_000)
        print(f"{name}: 5,000 tables made in {time.monotonic() - began:.0f} s")
        task.start_here()
        written = names[7::400]
        for turn in (1, 2):
            insert = f"({turn}, 'é', -1.25, '2024-02-29 01:02:03')"
            updated = [f"UPDATE {table} SET n = {turn} WHERE id = 1" for table in written]
            server.execute(
                *[f"INSERT INTO {table} VALUES {insert}" for table in written], *updated, database=task.database
            )
            assert catch_up_watched(task) < 400_000_000
            assert_tables_equal_source(spark, task, written)
            assert silver_tables(task) == set(written)


@pytest.mark.long
def test_a_full_load_of_many_tables(mysql80, spark, tmp_path):
    """200 small tables are loaded; the time per table is printed."""
    task = Task(tmp_path, mysql80, mysql80.fresh_database("load"), mode="all", jvm_options=AS_USERS)
    names = create_tables(mysql80, task.database, 200)
    rows = ", ".join(f"({number}, 'row {number}', {number}.5, NULL)" for number in range(20))
    mysql80.execute(*[f"INSERT INTO {table} VALUES {rows}" for table in names], database=task.database)
    began = time.monotonic()
    assert catch_up_watched(task) < 400_000_000
    print(f"{(time.monotonic() - began) / len(names):.2f} s a table")
    assert_tables_equal_source(spark, task, names)


TABLES = ("a", "b", "c")
WRITERS = 6


def write_rows(server: Server, database: str, lane: int, seconds: float) -> int:
    """Write one-row transactions on keys of this lane, a sixth of 1,000 per second; their number."""
    table, done, began = TABLES[lane % len(TABLES)], 0, time.monotonic()
    with server.connect(database=database) as connection, connection.cursor() as cursor:
        while time.monotonic() < began + seconds:
            turn, step = divmod(done, 5)
            key = lane * 10**6 + 3 * turn
            statements = (
                f"INSERT INTO {table} VALUES ({key}, {done}, 'first')",
                f"INSERT INTO {table} VALUES ({key + 1}, {done}, 'goes')",
                f"UPDATE {table} SET n = {done}, v = 'changed' WHERE id = {key}",
                f"INSERT INTO {table} VALUES ({key + 2}, {done}, 'zweite é')",
                f"DELETE FROM {table} WHERE id = {key + 1}",
            )
            cursor.execute(statements[step])
            done += 1
            time.sleep(max(0.0, began + done * WRITERS / 1_000 - time.monotonic()))
    return done


@pytest.mark.long
def test_a_thousand_transactions_a_second(mysql80, spark, tmp_path):
    """Six writers of one-row transactions for 20 s beside a running task: each transaction arrives exactly once."""
    task = Task(tmp_path, mysql80, mysql80.fresh_database("quick"), tables=TABLES, jvm_options=AS_USERS)
    columns = "(id INT NOT NULL PRIMARY KEY, n INT NOT NULL, v VARCHAR(20) NOT NULL)"
    mysql80.execute(*[f"CREATE TABLE {table} {columns}" for table in TABLES], database=task.database)
    task.start_here()
    since = mysql80.position()[:2]
    with task.process() as process:
        process.wait_for("source opened", 180)
        began = time.monotonic()
        with ThreadPoolExecutor(WRITERS) as pool:
            counts = list(pool.map(lambda lane: write_rows(mysql80, task.database, lane, 20.0), range(WRITERS)))
        print(f"{sum(counts) / (time.monotonic() - began):.0f} transactions a second, {sum(counts)} in all")
        process.terminate()
        assert process.wait(180) == 0, process.log()
        print(
            f"{process.count('batch landed')} batches had landed, {process.count('range applied')} ranges were applied"
        )
    catch_up_watched(task)
    assert_exactly_once(spark, task, since)
    bronze = spark.table(Lakehouse(root=str(task.root)).bronze)
    assert bronze.where("op IN ('insert', 'update', 'delete')").count() == sum(counts)
