"""What an attempt of a run leaves behind if its pipelines cannot be opened."""

from dataclasses import replace

import pytest
import yaml

from dmdelta.cli.main import execute
from dmdelta.engine.control import listener
from dmdelta.engine.run import assembly
from dmdelta.errors import CommitConflict
from dmdelta.model.retry import Retry
from tests.support.check import assert_tables_equal_source
from tests.support.task import Task

ROWS = (
    "CREATE TABLE orders (id INT PRIMARY KEY, state VARCHAR(20))",
    "INSERT INTO orders VALUES (1, 'new'), (2, 'paid')",
)
SECOND_PASSWORD = "DMDELTA_TEST_SECOND_PASSWORD"


@pytest.fixture
def tasks(mysql80, mariadb, tmp_path, monkeypatch):
    """The two sources of one task in mode `all`, each as a task of its own."""
    tasks = [Task(tmp_path, server, server.fresh_database("attempt"), mode="all") for server in (mysql80, mariadb)]
    for task in tasks:
        task.server.execute(*ROWS, database=task.database)
    first, second = tasks[0], replace(tasks[1], source_id="s2")
    specs = [yaml.safe_load(task.write_spec().read_text()) for task in (second, first)]
    specs[1]["sources"].append({**specs[0]["sources"][0], "password": f"${{{SECOND_PASSWORD}}}"})
    specs[1]["block-allow-list"] = {"do-dbs": [task.database for task in tasks]}
    first.spec.write_text(yaml.safe_dump(specs[1]))
    monkeypatch.setenv(SECOND_PASSWORD, second.server.password)
    return first, second


def test_a_transient_failure_after_the_relays_have_started_is_retried(tasks, spark, monkeypatch):
    """The next attempt resumes the full loads of all sources: no relay of the failed one holds a folder."""
    monkeypatch.setattr(listener, "AUTO_RESUME", Retry(first=0.0))
    failed = fail_once(monkeypatch, "s2")
    with tasks[0].environment():
        assert execute(["run", str(tasks[0].spec), "--until-caught-up"]) == 0
    assert failed == ["s2"]
    for task in tasks:
        assert_tables_equal_source(spark, task, ["orders"])


def fail_once(monkeypatch, source_id):
    """Let the first opening of the source's checkpoint fail; the returned list then has its ID."""
    failed, original = [], assembly.open_checkpoint

    def open_checkpoint(task, start, counters):
        if start.source.source_id == source_id and not failed:
            failed.append(source_id)
            raise CommitConflict("injected by a test", hint="none")
        return original(task, start, counters)

    monkeypatch.setattr(assembly, "open_checkpoint", open_checkpoint)
    return failed
