"""`/readyz` of a running task: 503 while a failpoint freezes applying, 200 before and after."""

import json
from contextlib import closing
from http.client import HTTPConnection

import pytest

from dmdelta.failpoint import CrashPoint
from tests.support.relaying import wait_until
from tests.support.servers.server import free_port
from tests.support.task import Task


@pytest.fixture
def task(mysql80, tmp_path):
    database = mysql80.fresh_database("ready")
    task = Task(tmp_path, mysql80, database, settings={"metrics": {"port": free_port()}})
    task.start_here()
    task.syncer["target-freshness"] = "2s"
    mysql80.execute(
        "CREATE TABLE orders (id INT PRIMARY KEY, state VARCHAR(20))",
        "INSERT INTO orders VALUES (1, 'new')",
        database=database,
    )
    return task


def answer_of(task, path):
    """Code and text of an answer; None while nothing listens."""
    try:
        with closing(HTTPConnection("127.0.0.1", task.settings["metrics"]["port"], timeout=30)) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
    except OSError:
        return None


def has_applied(task):
    """Whether everything that the server has now is in silver."""
    answer = answer_of(task, "/status.json")
    sources = json.loads(answer[1])["sources"] if answer is not None else []
    file, offset, _ = task.server.position()
    return bool(sources) and all((source["applied_to"] or "").endswith(f"/{file}:{offset}") for source in sources)


@pytest.mark.long
def test_a_task_whose_applying_is_frozen_is_not_ready(task):
    """The limit is three times the target freshness; the process stays alive, and recovers without a restart."""
    frozen = task.hangs
    with task.process() as run:
        wait_until(lambda: run.poll() is not None or has_applied(task), 180)
        wait_until(lambda: answer_of(task, "/readyz") == (200, "ready\n"), 60)
        task.arm(CrashPoint.SILVER_BEFORE_COMMIT, "hang")
        task.server.execute("UPDATE orders SET state = 'paid'", database=task.database)
        wait_until(frozen.exists, 60)
        try:
            wait_until(lambda: answer_of(task, "/readyz")[0] == 503, 60)
            code, text = answer_of(task, "/readyz")
            assert (code, text[:7]) == (503, "s1: lag"), run.log()
            assert text.endswith("limit 6 s\n")
            assert answer_of(task, "/healthz") == (200, "ok\n")
            assert not has_applied(task)
        finally:
            frozen.unlink()
        wait_until(lambda: answer_of(task, "/readyz") == (200, "ready\n"), 60)
        wait_until(lambda: has_applied(task), 60)
        run.terminate()
        assert run.wait(60) == 0, run.log()
