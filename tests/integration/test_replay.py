"""`dmdelta replay`: history applied again, to the live table, to a new table, or to rebuild silver."""

import json
import random
import re
from collections import Counter
from contextlib import contextmanager
from datetime import timezone

import pytest

from dmdelta.bronze.progress import newest_landed
from dmdelta.changelog.context import SourceContext
from dmdelta.changelog.ranges import within
from dmdelta.cli.main import execute
from dmdelta.engine.control.exclusive import exclusive_access
from dmdelta.engine.history.positions import LandedPositions, Side, find_place
from dmdelta.engine.replay import table as replay_module
from dmdelta.errors import HeldByCommand
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.rules import SourceRules
from tests.support.check import assert_silver_equals_source, assert_tables_equal_source
from tests.support.diff import silver_rows
from tests.support.task import Task
from tests.support.values import source_columns, source_rows
from tests.support.workload import Workload, create_tables, write_steps

TABLES = ("customers", "orders", "page_views")
CHANGES = (
    "ALTER TABLE customers ADD COLUMN points INT NOT NULL DEFAULT 7 INVISIBLE, MODIFY balance DECIMAL(14,3) NOT NULL",
    "UPDATE orders SET id = id + 5000000 WHERE id % 3 = 0",
    "DELETE FROM customers WHERE id % 2 = 0",
    "TRUNCATE TABLE customers",
)


def replay(task, capsys, *arguments, code=0):
    """The JSON result of a replay, or stderr if it fails."""
    capsys.readouterr()
    with task.environment():
        ended = execute(["replay", str(task.spec), *arguments, "--json"])
    out, err = capsys.readouterr()
    assert ended == code, err[-3000:]
    return json.loads(out) if code == 0 else err


class Record:
    """What the source holds now, and its position in the log."""

    def __init__(self, task):
        file, offset, _ = task.server.position()
        self.place = f"{file}:{offset}"
        self.columns = {table: source_columns(task.server, task.database, table)[0] for table in TABLES}
        self.rows = {table: source_rows(task.server, task.database, table, self.columns[table]) for table in TABLES}

    def assert_equals(self, table, frame):
        names = [column.name for column in self.columns[table]]
        assert sorted(names) == sorted(name for name in frame.columns if not name.startswith("_dm_"))
        assert Counter(silver_rows(frame, names)) == Counter(self.rows[table]) != Counter()


@pytest.fixture(scope="module")
def shop(mysql80, tmp_path_factory):
    """A task that loaded a shop and followed it; what the source held at some positions on the way."""
    task = Task(tmp_path_factory.mktemp("replay"), mysql80, mysql80.fresh_database("replay"), mode="all", tables=TABLES)
    create_tables(mysql80, task.database, keyless=True)
    write_steps(mysql80, task.database, 40, keyless=True)
    task.catch_up()
    records = []
    for lane, change in enumerate(CHANGES, 1):
        write_steps(mysql80, task.database, 40, lane=lane, keyless=True)
        records.append(Record(task))
        mysql80.execute(change, database=task.database)
        if lane == 2:
            task.catch_up()
    write_steps(mysql80, task.database, 25, lane=9, keyless=True)
    records.append(Record(task))
    task.catch_up()
    return task, records


def silver_of(spark, task, name):
    return spark.table(Lakehouse(root=str(task.root)).silver(*name.split(".")))


def contents(spark, task, table):
    """All of a silver table, including silver's own columns."""
    return Counter(map(str, silver_of(spark, task, f"{task.database}.{table}").collect()))


@pytest.mark.parametrize(
    "wanted",
    [
        [(1, "customers"), (2, "orders")],
        pytest.param([(0, "orders"), (1, "page_views"), (3, "customers"), (4, "customers")], marks=pytest.mark.long),
    ],
)
def test_a_table_as_it_was_at_a_position(shop, spark, capsys, wanted):
    """--into gives what the source held there: after a full load, across schema changes, with and without a key."""
    task, records = shop
    for number, table in wanted:
        into = f"then.{table}_{number}"
        place = records[number].place
        (done,) = replay(task, capsys, f"--table={task.database}.{table}", f"--to={place}", f"--into={into}")
        assert done["end"].endswith(place)
        records[number].assert_equals(table, silver_of(spark, task, into))
    again = f"--table={task.database}.{table}", f"--to={place}"
    assert replay(task, capsys, *again, f"--into={into}")[0]["rows"] == 0
    records[number].assert_equals(table, silver_of(spark, task, into))
    number, table = wanted[0]
    assert "choose another name" in replay(task, capsys, *again, f"--into=then.{table}_{number}", code=5)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_twenty_positions_under_load(mysql80, spark, tmp_path, capsys):
    """--into gives what the source held at twenty positions, each recorded while the writers paused."""
    task = Task(tmp_path, mysql80, mysql80.fresh_database("replay"), mode="all", tables=TABLES)
    records = []
    with Workload(mysql80, task.database, seed=12, per_second=20, keyless=True) as work:
        work.wait_for(40)
        task.catch_up()
        for _ in range(20):
            work.wait_for(work.transactions + 10)
            with work.paused():
                records.append(Record(task))
    task.catch_up()
    for number, record in enumerate(records):
        table = TABLES[number % len(TABLES)]
        into = f"then.{table}_{number}"
        replay(task, capsys, f"--table={task.database}.{table}", f"--to={record.place}", f"--into={into}")
        record.assert_equals(table, silver_of(spark, task, into))


@pytest.mark.long
def test_ranges_change_nothing(shop, spark, capsys):
    """Any range that is in silver, replayed into it, leaves every row and every row version of the table unchanged."""
    task, records = shop
    rng = random.Random(5)
    before = {table: contents(spark, task, table) for table in ("customers", "orders")}
    for begin, end in [(0, 4), *(sorted(rng.sample(range(5), 2)) for _ in range(2))]:
        places = f"--from={records[begin].place}", f"--to={records[end].place}"
        for done in replay(task, capsys, f"--table={task.database}.[co]*", *places):
            assert (done["missing"], done["different"], done["extra"]) == (0, 0, 0)
    assert {table: contents(spark, task, table) for table in before} == before


def test_damage_in_a_range_is_put_right(shop, spark, capsys):
    """Lost, stale, changed, duplicate and undeleted rows are repaired; the task continues as before."""
    task, records = shop
    table = f"{task.database}.orders"
    place = Lakehouse(root=str(task.root)).silver(task.database, "orders")
    before = contents(spark, task, "orders")
    ids = sorted(
        row.id for row in spark.sql(f"SELECT id FROM {place} WHERE id BETWEEN 30000000 AND 50000000").collect()
    )
    lost, changed, doubled = ids[:3]
    gone = spark.sql(f"SELECT min(id) - 5000000 AS id FROM {place} WHERE id % 10000000 > 5000000").head().id
    spark.sql(f"INSERT INTO {place} SELECT * FROM {place} WHERE id = {doubled}")
    spark.sql(
        f"INSERT INTO {place} SELECT {gone} AS id, * EXCEPT (id, _dm_version, _dm_committed_at), "
        f"named_struct('epoch', 2, 'seq', 5L, 'row', 0), _dm_committed_at FROM {place} WHERE id = {lost}"
    )
    spark.sql(f"DELETE FROM {place} WHERE id = {lost}")
    spark.sql(f"UPDATE {place} SET total = total + 1 WHERE id = {changed}")
    places = f"--from={records[0].place}", f"--to={records[4].place}"
    (done,) = replay(task, capsys, f"--table={table}", *places)
    assert (done["missing"], done["different"], done["extra"]) == (1, 2, 1)
    assert contents(spark, task, "orders") == before
    write_steps(task.server, task.database, 10, lane=20, keyless=True)
    task.catch_up()
    assert_silver_equals_source(spark, task)


@pytest.mark.long
def test_silver_is_rebuilt_from_bronze(shop, spark, capsys):
    """--rebuild restores every row and row version, whatever silver has become; the log resumes after it."""
    task, _ = shop
    lakehouse = Lakehouse(root=str(task.root))
    before = {table: contents(spark, task, table) for table in TABLES}
    spark.sql(f"DELETE FROM {lakehouse.silver(task.database, 'page_views')} WHERE visitor % 2 = 0")
    spark.sql(f"ALTER TABLE {lakehouse.silver(task.database, 'customers')} DROP COLUMN points")
    done = replay(task, capsys, f"--table={task.database}.*", "--rebuild")
    assert [line["table"] for line in done] == [f"{task.database}.{table}" for table in TABLES]
    assert {table: contents(spark, task, table) for table in TABLES} == before
    write_steps(task.server, task.database, 10, lane=21, keyless=True)
    task.catch_up()
    assert_silver_equals_source(spark, task)


@pytest.mark.long
def test_a_rebuild_starts_over_if_the_table_is_read_again_meanwhile(mysql80, spark, tmp_path, capsys, monkeypatch):
    """The log lacks a change of the source, so only the rows of the new snapshot equal it."""
    task = Task(tmp_path, mysql80, mysql80.fresh_database("replay"), mode="all", tables=["t"])
    mysql80.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))",
        "INSERT INTO t VALUES (1,'one'),(2,'two'),(3,'three')",
        database=task.database,
    )
    task.catch_up()

    @contextmanager
    def after_a_snapshot(spec):
        unlogged = "SET sql_log_bin = 0", "UPDATE t SET v = 'zwei' WHERE id = 2", "DELETE FROM t WHERE id = 3"
        mysql80.execute(*unlogged, database=task.database)
        with task.environment():
            assert execute(["snapshot", str(task.spec), f"--table={task.database}.t"]) == 0
        task.catch_up()
        capsys.readouterr()
        with exclusive_access(spec) as access:
            yield access

    monkeypatch.setattr(replay_module, "exclusive_access", after_a_snapshot)
    (done,) = replay(task, capsys, f"--table={task.database}.t", "--rebuild")
    assert done["rows"] == 2
    mysql80.execute("INSERT INTO t VALUES (4,'four')", database=task.database)
    task.catch_up()
    assert_tables_equal_source(spark, task, ["t"])


@pytest.mark.long
def test_a_rebuild_under_other_rules_starts_over(mysql80, spark, tmp_path, capsys, monkeypatch):
    """Silver gets the rows of the present rules, although a rebuild under earlier ones was whole and only not written."""
    task = Task(tmp_path, mysql80, mysql80.fresh_database("replay"))
    task.start_here()
    mysql80.execute(
        "CREATE TABLE t (id INT PRIMARY KEY)",
        "INSERT INTO t VALUES (1), (2), (3)",
        "DELETE FROM t WHERE id = 3",
        database=task.database,
    )
    task.catch_up()

    @contextmanager
    def held(spec):
        raise HeldByCommand("another command is working")
        yield

    rebuild = f"--table={task.database}.t", "--rebuild"
    with monkeypatch.context() as patched:
        patched.setattr(replay_module, "exclusive_access", held)
        assert "another command" in replay(task, capsys, *rebuild, code=5)
    task.settings["filters"] = {"kept": {"schema-pattern": task.database, "events": ["delete"], "action": "Ignore"}}
    task.write_spec()
    replay(task, capsys, *rebuild)
    silver = spark.table(Lakehouse(root=str(task.root)).silver(task.database, "t"))
    assert sorted(row.id for row in silver.collect()) == [1, 2, 3]


def test_places_in_the_log(shop, spark):
    """A GTID stands for its transaction, a time for the first event since then, a batch for what landed with it."""
    task, records = shop
    lakehouse = Lakehouse(root=str(task.root))
    source = SourceContext(lakehouse, "t", "s1", "test", "mysql", SourceRules("s1"))
    landed = newest_landed(spark, source)
    log = LandedPositions(spark, source, landed.end)
    changes = (
        spark.table(lakehouse.bronze).where("op IN ('insert', 'update', 'delete')").orderBy("seq", "row").collect()
    )
    some = changes[len(changes) // 2]
    begin, end = (find_place(log, some.gtid, side) for side in Side)
    rows = spark.table(lakehouse.bronze).where(within(begin, end)).where("op IN ('insert', 'update', 'delete')")
    assert {row.gtid for row in rows.collect()} == {some.gtid}
    since = find_place(log, some.committed_at.astimezone(timezone.utc).isoformat(), Side.FROM)
    assert since <= begin
    earlier = [row.committed_at for row in changes if (row.epoch, row.seq) < since.key]
    assert max(earlier) < some.committed_at
    assert find_place(log, f"batch:{landed.batch}", Side.FROM) == landed.begin
    assert find_place(log, f"batch:{landed.batch}", Side.TO) == landed.end
    assert str(find_place(log, records[0].place, Side.TO)) == f"2/{records[0].place}"
    assert find_place(log, "2100-01-01", Side.TO) == landed.end


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (("--from=batch:1",), 2, "needs a range"),
        (("--into=then.x",), 2, "one position"),
        (("--from=batch:2", "--to=binlog.009999:4"), 2, "no changes of binlog.009999"),
        (("--from=yesterday", "--to=batch:1"), 2, "not a place in the log"),
        (("--from=batch:3", "--to=batch:2"), 2, "before it begins"),
    ],
)
def test_what_cannot_be_replayed_is_refused(shop, capsys, arguments, code, reason):
    """Each with the reason, before anything is written."""
    task, _ = shop
    assert reason in replay(task, capsys, f"--table={task.database}.orders", *arguments, code=code)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_running_task_is_paused_while_it_is_repaired(mysql80, spark, tmp_path, capsys):
    """The repair pauses it and then resumes it; so does --rebuild."""
    task = Task(tmp_path, mysql80, mysql80.fresh_database("replay"), tables=TABLES)
    task.start_here()
    create_tables(mysql80, task.database, keyless=True)
    begin = Record(task).place
    write_steps(mysql80, task.database, 30, keyless=True)
    end = Record(task).place
    place = Lakehouse(root=str(task.root)).silver(task.database, "orders")
    with task.process() as process:
        process.wait_for("range applied", seconds=300)
        process.wait_for("checkpoint flushed", seconds=60)
        (first,) = spark.sql(f"SELECT min(id) AS id FROM {place}").collect()
        spark.sql(f"DELETE FROM {place} WHERE id = {first.id}")
        (done,) = replay(task, capsys, f"--table={task.database}.orders", f"--from={begin}", f"--to={end}")
        assert done["missing"] == 1
        assert process.count('"paused"') == 1
        replay(task, capsys, f"--table={task.database}.customers", "--rebuild")
        assert process.count('"paused"') == 2
        write_steps(mysql80, task.database, 10, lane=1, keyless=True)
        process.wait_for("range applied", seconds=300, times=process.count("range applied") + 1)
    task.catch_up()
    assert_silver_equals_source(spark, task)


@pytest.mark.long
@pytest.mark.timeout(2400)
def test_random_ranges_into_a_table_under_load(mysql80, spark, tmp_path, capsys):
    """Forty ranges of tables under constant writes change nothing; at the end silver equals the source."""
    seldom = {"target-freshness": "10s"}  # else the task alone would keep two cores busy
    task = Task(tmp_path, mysql80, mysql80.fresh_database("replay"), mode="all", tables=TABLES, syncer=seldom)
    rng = random.Random(11)
    with Workload(mysql80, task.database, seed=11, per_second=5, keyless=True) as work, task.process() as process:
        process.wait_for("range applied", seconds=300, times=2)
        places, asked, rows = [], 0, 0
        while asked < 40:
            work.wait_for(work.transactions + 5)
            file, offset, _ = mysql80.position()
            places.append((file, offset))
            known = [place for place in places if place <= applied(process)]
            if len(known) < 3:
                continue
            begin = rng.randrange(len(known) - 1)
            end = min(begin + rng.randint(1, 10), len(known) - 1)
            bounds = [f"--{word}={known[at][0]}:{known[at][1]}" for word, at in (("from", begin), ("to", end))]
            for done in replay(task, capsys, f"--table={task.database}.[co]*", *bounds):
                assert (done["missing"], done["different"], done["extra"]) == (0, 0, 0)
                asked, rows = asked + 1, rows + done["rows"]
    assert rows > asked
    task.catch_up()
    assert_silver_equals_source(spark, task)


def applied(process):
    """The end of the log that a running task has applied after its snapshot: file and offset."""
    ends = re.findall(r'"range applied", .*"end": "\d+/(binlog[^":]+):(\d+)"', process.whole_log())
    return (ends[-1][0], int(ends[-1][1])) if ends else ("", 0)
