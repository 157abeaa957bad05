"""The sink on real servers: after a tangled workload the target equals the source, whatever is killed."""

import os
import pickle
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest

from dmdelta.changelog.context import SourceContext
from dmdelta.failpoint import VARIABLE, CrashPoint
from dmdelta.sink.execute import slice_executor
from dmdelta.sink.settings import SinkSettings
from dmdelta.sink.startup import open_sink
from tests.support import tangles
from tests.support.pipeline import TASK
from tests.support.sink_process import Recorded, record_range
from tests.support.sinking import SOURCE, Sinking, table_differences, target_of

POINTS = [point for point in CrashPoint if point.name.startswith("SINK") and point is not CrashPoint.SINK_RESYNCED]
STATEMENTS = [CrashPoint.SINK_BEFORE_STATEMENT, CrashPoint.SINK_AFTER_STATEMENT]
"""Passed at the start of the log only."""
UNTIED = (CrashPoint.SINK_BEFORE_CREATE, CrashPoint.SINK_AFTER_CREATE)
"""Only passed where tables are missing: the other kills have tables with triggers."""
ACTIONS = (CrashPoint.SINK_BETWEEN_ACTIONS,)
"""Only passed where the target has a part of a statement: see `tests/crash/rows.py`."""
RELOADS = (CrashPoint.SINK_RELOAD_EMPTIED, CrashPoint.SINK_RELOAD_EXECUTED)
"""Only passed with an ad-hoc snapshot: see `test_sink_ad_hoc`."""

KILLS = STATEMENTS + [point for point in POINTS if point not in (*UNTIED, *STATEMENTS, *ACTIONS, *RELOADS)]
"""In an order in which each is passed: the end of every run drains and flushes, however little is left to execute."""
AROUND_COMMITS = (CrashPoint.SINK_AFTER_COMMIT, CrashPoint.SINK_MID_FLUSH, CrashPoint.SINK_AFTER_FLUSH)


@pytest.fixture
def target(request):
    return request.getfixturevalue(request.param)


def write(server, seed, transactions, *, statements=True, image="FULL"):
    """A database with the tangled tables and a workload on them, logged with a `binlog_row_image`; its name."""
    database = server.fresh_database("tangle")
    server.execute(*tangles.TABLES.values(), database=database)
    begin = f"SET binlog_row_image = '{image}'"
    with server.connect(database=database, autocommit=False, init_command=begin) as connection:
        tangles.Tangler(connection, seed, statements=statements).work(transactions)
    return database


def assert_same(source, target, database):
    found = [line for table in tangles.TABLES for line in table_differences(source, target, database, table)]
    assert not found, f"{len(found)} differences: {found[:5]}"


@pytest.mark.parametrize("target", [pytest.param("mariadb", marks=pytest.mark.long), "mysql80_too"], indirect=True)
def test_target_is_as_the_source(mysql80, target, spark, tmp_path, monkeypatch):
    """Key changes, swaps of unique values, tables without a key, statements in between: target = source."""
    monkeypatch.setattr(slice_executor, "MANY", 1)
    database = write(mysql80, 1, 60)
    settings = SinkSettings(target_of(target), metadata=f"dm_{database}", workers=4, batch=10, flush_interval=1.0)
    sinking = Sinking(spark, tmp_path, mysql80, [database], settings)
    sinking.land()
    sinking.run()
    assert_same(mysql80, target, database)


@pytest.mark.long
@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
@pytest.mark.parametrize("target", ["mysql80_too", "mariadb"], indirect=True)
def test_images_with_some_columns(mysql80, target, spark, tmp_path, image):
    """Logs that hold only some of the columns: target = source."""
    database = write(mysql80, 4, 80, statements=False, image=image)
    settings = SinkSettings(target_of(target), f"dm_{database}", workers=4, batch=10, flush_interval=1.0)
    sinking = Sinking(spark, tmp_path, mysql80, [database], settings)
    sinking.land()
    sinking.run()
    assert_same(mysql80, target, database)


@pytest.mark.parametrize(
    "target",
    [
        "mysql80_too",
        pytest.param("mariadb", marks=pytest.mark.long),
        pytest.param("tidb", marks=[pytest.mark.tidb, pytest.mark.long]),
    ],
    indirect=True,
)
def test_without_records_all_is_executed_again(mysql80, target, spark, tmp_path, caplog):
    """The target's metadata are lost: safe mode repairs tables with a key, and warns of the one without."""
    database = write(mysql80, 2, 60, statements=False)
    settings = SinkSettings(target_of(target), f"dm_{database}", workers=4, batch=10, flush_interval=1.0)
    sinking = Sinking(spark, tmp_path, mysql80, [database], settings)
    sinking.land()
    sinking.run()
    target.execute(f"DROP DATABASE {settings.metadata}")
    sinking.run()
    keyed = [table for table in tangles.TABLES if table != "bag"]
    assert [line for table in keyed for line in table_differences(mysql80, target, database, table)] == []
    warned = [one.context["table"] for one in caplog.records if "without a key" in one.getMessage()]
    assert warned == [f"`{database}`.`bag`"]


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("seed", "target"), [*zip(range(1, 6), cycle(("mariadb", "mysql80_too")), strict=False)], indirect=["target"]
)
def test_any_number_of_workers(mysql80, target, spark, tmp_path, seed, monkeypatch):
    """1, 4 and 16 workers, compacting or not, merging or not, rows in parallel or not: target = source.

    Each seed has one target, because work of all seeds is similar.
    """
    database, server = write(mysql80, seed, 150), target_of(target)
    sinking = Sinking(spark, tmp_path, mysql80, [database], SinkSettings(server, f"dm_{database}"))
    sinking.land()
    for workers, compact, multiple, batch in ((1, True, True, 100), (4, True, True, 10), (16, False, False, 3)):
        monkeypatch.setattr(slice_executor, "MANY", 1 if workers == 4 else 1000)
        target.execute(f"DROP DATABASE IF EXISTS {database}")
        sinking.settings = SinkSettings(
            server, f"dm_{database}_{workers}", workers, batch, compact, multiple, flush_interval=1.0
        )
        sinking.run()
        assert_same(mysql80, target, database)


def watched(target, database):
    """The tables in the target, with triggers that count every write of a row."""
    target.execute(f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
    target.execute(*tangles.TABLES.values(), "CREATE TABLE writes (t VARCHAR(20))", database=database)
    for table in tangles.TABLES:
        target.execute(
            *(
                f"CREATE TRIGGER {table}_{act} AFTER {act} ON {table} FOR EACH ROW INSERT INTO writes VALUES ('{table}')"
                for act in ("INSERT", "UPDATE", "DELETE")
            ),
            database=database,
        )


@pytest.fixture
def recorded(mysql80, target, spark, tmp_path):
    """A range of changes as Spark computes them, for sinks in other processes, and the number of its row changes."""
    database = write(mysql80, 3, 120, statements=False)
    watched(target, database)
    settings = SinkSettings(target_of(target), f"dm_{database}", 4, batch=5, compact=False, flush_interval=0.05)
    return recording(mysql80, spark, tmp_path, database, settings, every=15)


@pytest.fixture
def many(mysql80, target, spark, tmp_path):
    """The same for rows inserted in large transactions, which the sink executes in parallel."""
    database = mysql80.fresh_database("many")
    mysql80.execute(*tangles.TABLES.values(), database=database)
    for first in range(0, 12000, 200):
        rows = ", ".join(f"({number}, 'v{number}', {number})" for number in range(first, first + 200))
        mysql80.execute(f"INSERT INTO plain VALUES {rows}", database=database)
    watched(target, database)
    settings = SinkSettings(target_of(target), f"dm_{database}", 4, batch=100, flush_interval=0.05)
    return recording(mysql80, spark, tmp_path, database, settings, every=15)


def recording(source, spark, folder, database, settings, *, every):
    """Land and record; slices end after each `every`th transaction, so that the points between slices are passed."""
    sinking = Sinking(spark, folder, source, [database], settings)
    sinking.land()
    rows = sinking.pipeline.bronze(SOURCE)
    counts = {
        row[0]: row[1]
        for row in rows.where("op IN ('insert', 'update', 'delete')").groupBy("table_name").count().collect()
    }
    own = SourceContext(sinking.pipeline.lakehouse, TASK, SOURCE, "recording", source.flavor, sinking.rules)
    sink = open_sink(spark, own, settings)
    begin, end = sinking.bounds()
    survey, tables = record_range(sink.reader, begin, end)
    sink.position = begin
    sink.end(orderly=True)
    survey = replace(survey, cuts=sinking.transactions(begin, end, every))
    return database, counts, Recorded(survey, tables, own, settings)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("target", ["mariadb", pytest.param("mysql80_too", marks=pytest.mark.long)], indirect=True)
def test_a_kill_at_each_point_repeats_nothing(mysql80, target, recorded, tmp_path):
    """SIGKILL at each named point in turn, then a complete run: target = source, each row change executed once."""
    database, counts, changes = recorded
    file = tmp_path / "recorded"
    file.write_bytes(pickle.dumps(changes))
    for number, point in enumerate(KILLS):
        nth = 3 if "transaction" in point.value or "commit" in point.value or "record" in point.value else 1
        assert run_until(file, f"run-{number}", f"{point.value}:{nth}") == -signal.SIGKILL, point.value
    assert run_until(file, "last", "") == 0
    assert_same(mysql80, target, database)
    assert written(target, database) == counts


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("target", ["mysql80_too", "mariadb"], indirect=True)
def test_kills_among_rows_side_by_side_repeat_nothing(mysql80, target, many, tmp_path):
    """SIGKILL before, within and after transactions of many rows: each row is inserted once."""
    database, counts, changes = many
    file = tmp_path / "recorded"
    file.write_bytes(pickle.dumps(changes))
    for number, point in enumerate((CrashPoint.SINK_BEFORE_RECORD, CrashPoint.SINK_BEFORE_COMMIT, *AROUND_COMMITS)):
        nth = 1 if "flush" in point.value else 7
        assert run_until(file, f"run-{number}", f"{point.value}:{nth}") == -signal.SIGKILL, point.value
    assert run_until(file, "last", "") == 0
    assert_same(mysql80, target, database)
    assert written(target, database) == counts == {"plain": 12000}


@pytest.mark.parametrize("target", ["mysql80_too"], indirect=True)
def test_kills_around_the_creation_of_a_table(mysql80, target, recorded, tmp_path):
    """SIGKILL before and after the CREATE TABLE of a missing target table: the next run creates and fills it."""
    database, _, changes = recorded
    file = tmp_path / "recorded"
    # A log that begins after the source's own CREATE TABLE.
    file.write_bytes(pickle.dumps(replace(changes, survey=replace(changes.survey, statements=[]))))
    target.execute(f"DROP DATABASE {database}")
    for number, point in enumerate(UNTIED):
        assert run_until(file, f"run-{number}", point.value) == -signal.SIGKILL, point.value
    assert run_until(file, "last", "") == 0
    assert_same(mysql80, target, database)


@pytest.mark.parametrize("target", ["mysql80_too"], indirect=True)
def test_a_kill_behind_an_xa_commit_repeats_nothing(mysql80, target, spark, tmp_path):
    """Rows prepared slices before their commit are recorded as executed until the checkpoint has passed them."""
    database = mysql80.fresh_database("xa")
    insert = "INSERT INTO plain (id) VALUES ({})"
    prepared = ("XA START 'x'", insert.format(1), insert.format(2), "XA END 'x'", "XA PREPARE 'x'")
    between = [insert.format(number) for number in range(10, 22)]
    mysql80.execute(tangles.TABLES["plain"], *prepared, database=database)
    mysql80.execute(*between[:6], "XA COMMIT 'x'", *between[6:], database=database)
    target.execute(f"CREATE DATABASE {database}")
    target.execute(tangles.TABLES["plain"], database=database)
    settings = SinkSettings(target_of(target), f"dm_{database}", 1, flush_interval=600.0)
    _, _, changes = recording(mysql80, spark, tmp_path, database, settings, every=2)
    file = tmp_path / "recorded"
    file.write_bytes(pickle.dumps(changes))
    assert run_until(file, "first", f"{CrashPoint.SINK_AFTER_COMMIT.value}:6") == -signal.SIGKILL
    assert len(target.query(f"SELECT 1 FROM {database}.plain WHERE id < 10")) == 2
    assert run_until(file, "last", "") == 0
    assert not table_differences(mysql80, target, database, "plain")


def written(target, database):
    """How often rows of each table were written, according to its triggers."""
    return dict(target.query(f"SELECT t, count(*) FROM {database}.writes GROUP BY t"))


def run_until(file, run, failpoint):
    environment = {**os.environ, VARIABLE: failpoint, "PYTHONPATH": str(Path.cwd())}
    command = [sys.executable, "-m", "tests.support.sink_process", str(file), run]
    return subprocess.run(command, env=environment, check=False, timeout=120).returncode
