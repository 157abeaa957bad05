"""Metrics of a running task."""

import threading
from contextlib import closing
from http.client import HTTPConnection
from unittest.mock import patch

from prometheus_client.parser import text_string_to_metric_families

from dmdelta.cli.main import execute
from dmdelta.engine.run import runner
from dmdelta.errors import SourceUnavailable
from tests.support.relaying import wait_until
from tests.support.servers.server import free_port
from tests.support.task import Task

PHASES = ("land", "turn", "apply", "flush")


def figures_at(port):
    """A task's metrics by name and by the label that distinguishes stages and phases."""
    try:
        with closing(HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
    except OSError:
        return {}  # not yet
    samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    return {(each.name, each.labels.get("stage") or each.labels.get("phase")): each.value for each in samples}


def test_metrics_change_while_a_task_runs(mysql80, spark, tmp_path):
    """A transient failure is counted; segments grow, and at the end no stage waits for them; safe mode is visible."""
    database = mysql80.fresh_database("figures")
    port = free_port()
    task = Task(tmp_path, mysql80, database, settings={"metrics": {"port": port}})
    task.start_here()
    mysql80.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)", database=database)
    task.write_spec()
    failures = [SourceUnavailable("away", hint="wait")]

    def open_pipeline(*arguments):
        if failures:
            raise failures.pop()
        return opened(*arguments)

    opened = runner.open_pipeline
    ended = []
    running = threading.Thread(
        target=lambda: ended.append(execute(["run", str(task.spec), "--safe-mode"])), daemon=True
    )
    with task.environment(), patch.object(runner, "open_pipeline", open_pipeline):
        running.start()
        seen = {}

        def settled():
            seen.update(figures_at(port))
            waiting = [seen.get(("dmdelta_relay_waiting_bytes", stage)) for stage in ("landed", "applied", "flushed")]
            timed = [seen.get(("dmdelta_batch_seconds_count", phase), 0) for phase in PHASES]
            return waiting == [0, 0, 0] and min(timed) > 0

        wait_until(settled, 240)
        before = dict(seen)
        assert before["dmdelta_task_retries_total", None] == 1
        assert before["dmdelta_safe_mode_tables", None] == 1
        assert before["dmdelta_relay_bytes", None] > 0
        assert before["dmdelta_relay_free_bytes", None] > 0
        assert min(before["dmdelta_batch_seconds_sum", phase] for phase in PHASES) > 0
        mysql80.execute("INSERT INTO t VALUES (3)", database=database)
        wait_until(lambda: figures_at(port)["dmdelta_relay_bytes", None] > before["dmdelta_relay_bytes", None], 120)
        assert execute(["stop", str(task.spec)]) == 0
        running.join(60)
    assert ended == [0]
