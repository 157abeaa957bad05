"""The stages that commands report while they query rows."""

import os
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from dmdelta.config import load_spec
from dmdelta.engine.inspect.events import EventQuery, events
from dmdelta.engine.quality.command import QualityRequest, evaluate_tables
from dmdelta.engine.validation.command import validate
from dmdelta.engine.validation.results import Outcome, ValidateRequest
from dmdelta.report.gather import gather
from tests.support.task import Task
from tests.support.terminal import on_terminal


@pytest.fixture
def task(mysql80, tmp_path):
    made = Task(tmp_path, mysql80, mysql80.fresh_database("stages"))
    made.start_here()
    mysql80.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", database=made.database)
    made.catch_up()
    return made


def test_stages_follow_the_work(task):
    """Each stage precedes its result; commands that need to look up tables report that first."""
    table, told = f"{task.database}.t", list[object]()
    with task.environment():
        spec = load_spec(task.spec)
        rows = events(spec, EventQuery(), told.append)
        assert told == ["reading bronze"]
        assert [row["op"] for row in rows if row["table"] == table][-1] == "insert"
        told.clear()
        evaluate_tables(spec, QualityRequest(), lambda found: told.append(found.subject.table), told.append)
        assert told == ["looking up tables", f"evaluating {table} (1 of 1)", (task.database, "t")]
        told.clear()
        validate(spec, ValidateRequest(), lambda found: told.append(found.status), told.append)
        assert told == ["looking up tables", f"comparing {table} (1 of 1)", Outcome.SAME]
        told.clear()
        gather(spec, timedelta(hours=1), told.append)
        assert told == ["reading bronze", "reading the histories of silver", "reading schema changes and checks"]


def test_a_terminal_shows_the_stages_of_a_cold_command(task):
    """The stages in order, from before Spark starts; stdout has only the rows."""
    dmdelta = Path(sys.executable).with_name("dmdelta")
    with task.environment():
        shown = on_terminal([str(dmdelta), "events", str(task.spec), "--limit=1", "--json"], os.environ)
    assert shown.code == 0, shown.stderr
    assert list(shown.stages) == ["starting Spark", "reading bronze"]
    assert shown.stdout.startswith("[")
    assert "starting" not in shown.stdout
