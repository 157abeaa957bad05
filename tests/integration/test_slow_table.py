"""A slow table delays neither the other tables, which have turns of their own, nor a stop, nor a kill."""

import threading
import time

import pytest

from dmdelta.engine.apply import writer
from dmdelta.engine.run import runner
from dmdelta.engine.validation import validator
from dmdelta.engine.validation.store import VALIDATOR, read_progress
from dmdelta.failpoint import CrashPoint
from dmdelta.lakehouse.history import newest_own_commit
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.silver.table.target import silver_app
from tests.support.check import assert_exactly_once
from tests.support.diff import differences
from tests.support.task import Task

pytestmark = pytest.mark.long

SECONDS = 240


class Slow:
    """A task's tables; one of them is written only when allowed."""

    def __init__(self, task, spark):
        self.task, self.spark = task, spark
        self.lakehouse = Lakehouse(root=str(task.root))
        self.may, self.begun = threading.Event(), threading.Event()
        self.applied = 0
        self._apply = writer.apply_group

    def apply_group(self, spark, tables, requests):
        if any(table.table == "slow" for table in tables):
            self.may.wait(SECONDS)
            self.applied += 1
        return self._apply(spark, tables, requests)

    def apply_for_ever(self, spark, tables, requests):
        self.begun.set()
        spark.range(10**15).selectExpr("sum(hash(id))").collect()
        raise AssertionError("nobody gave it up")

    def ids(self, table):
        if not (self.task.root / "silver" / self.task.database / table / "_delta_log").exists():
            return set()
        rows = self.spark.table(self.lakehouse.silver(self.task.database, table)).collect()
        return {row.id for row in rows}

    def wait_for(self, table, row):
        deadline = time.monotonic() + SECONDS
        while row not in (there := self.ids(table)):
            assert time.monotonic() < deadline, f"{table} has {there}, not {row}"
            time.sleep(1)

    def left(self):
        """Tables with changes that the validator has not compared yet."""
        told = read_progress(VALIDATOR.of(self.spark, self.lakehouse, self.task.name)).get(self.task.source_id)
        return {table for _, table in told[0].left} if told else set()

    def end(self, table):
        """The position of a table: the end of its newest own commit."""
        app = silver_app(self.task.name, self.task.source_id, self.task.database, table)
        return newest_own_commit(self.spark, self.lakehouse.silver(self.task.database, table), app).tag.end

    def do(self, *statements):
        self.task.server.execute(*statements, database=self.task.database)

    def assert_same(self):
        for table in ("slow", "fast", "other"):
            silver = self.spark.table(self.lakehouse.silver(self.task.database, table))
            assert differences(self.task.server, self.task.database, table, silver) == []


@pytest.fixture
def slow(mysql80, spark, tmp_path, monkeypatch):
    task = Task(tmp_path, mysql80, mysql80.fresh_database("slow"))
    task.settings["validator"] = {"mode": "full"}
    task.start_here()
    made = Slow(task, spark)
    made.do(*(f"CREATE TABLE {table} (id INT PRIMARY KEY)" for table in ("slow", "fast", "other")))
    made.do(*(f"INSERT INTO {table} VALUES (0)" for table in ("slow", "fast", "other")))
    task.catch_up()
    monkeypatch.setattr(writer, "apply_group", made.apply_group)
    monkeypatch.setattr(validator, "GATHER_SECONDS", 1.0)
    return made


def test_the_others_continue_and_it_catches_up(slow):
    """Through several ranges; a rename waits for its tables only; at the end silver equals the source, validated."""
    with slow.task.running():
        try:
            for number in (1, 2, 3):
                slow.do(f"INSERT INTO slow VALUES ({number})", f"INSERT INTO fast VALUES ({number})")
                if number < 3:
                    slow.do(f"INSERT INTO other VALUES ({number})")
                slow.wait_for("fast", number)
            assert (slow.ids("slow"), slow.ids("other"), slow.applied) == ({0}, {0, 1, 2}, 0)
            slow.do("RENAME TABLE slow TO tmp, other TO slow, tmp TO other", "INSERT INTO slow VALUES (9)")
            slow.do("INSERT INTO fast VALUES (9)")
            slow.wait_for("fast", 9)
            assert (slow.ids("slow"), slow.ids("other")) == ({0}, {0, 1, 2})
        finally:
            slow.may.set()
        slow.wait_for("slow", 9)
        slow.wait_for("other", 3)
    slow.assert_same()
    assert slow.applied >= 2
    slow.task.catch_up()
    assert slow.left() == set()


def test_a_kill_with_tables_at_different_positions(slow):
    """One table is ranges behind the others when the process dies; each resumes at its own position, exactly once."""
    task, since = slow.task, slow.task.settings["meta"]
    slow.may.set()
    with task.process() as process:
        process.wait_for('"source opened"', seconds=SECONDS)
        task.arm(CrashPoint.SILVER_BEFORE_COMMIT, "hang")
        slow.do("INSERT INTO slow VALUES (1)")
        deadline = time.monotonic() + SECONDS
        while task.failpoint.exists():
            assert time.monotonic() < deadline, process.log()
            time.sleep(0.1)
        for number in (1, 2, 3):
            slow.do(f"INSERT INTO slow VALUES ({number + 1})", f"INSERT INTO fast VALUES ({number})")
            slow.do("UPDATE other SET id = id + 10")
            slow.wait_for("fast", number)
        slow.wait_for("other", 30)
        assert slow.ids("slow") == {0}
        process.kill()
    assert slow.end("slow") < min(slow.end("fast"), slow.end("other"))
    slow.do("DELETE FROM fast WHERE id = 1", "INSERT INTO slow VALUES (9)")
    task.catch_up()
    slow.assert_same()
    assert_exactly_once(slow.spark, task, (since["binlog-name"], since["binlog-pos"]))


def test_a_stop_gives_up_what_is_in_flight(slow, monkeypatch, capsys):
    """A stop does not wait for a slow table; the next start applies what it lacks."""
    monkeypatch.setattr(runner, "DRAIN_SECONDS", 0.5)
    monkeypatch.setattr(writer, "apply_group", slow.apply_for_ever)
    with slow.task.running():
        slow.do("INSERT INTO slow VALUES (1)")
        assert slow.begun.wait(SECONDS)
    assert "stop timed out; cancelling in-flight work" in capsys.readouterr().err
    assert slow.ids("slow") == {0}
    monkeypatch.setattr(writer, "apply_group", slow.apply_group)
    slow.may.set()
    slow.task.catch_up()
    slow.assert_same()
