"""A task's passwords do not appear in its files, its output, or its processes' and their children's command lines."""

import contextlib
import os
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pyarrow.parquet as pq
import pymysql
import pytest
import yaml

from dmdelta.cli.main import execute
from dmdelta.engine.snapshot.chunk_source import ChunkFrames
from dmdelta.lakehouse.session import is_provided
from dmdelta.source.snapshot.planner import plan_snapshot
from tests.support.relaying import endpoint_of
from tests.support.task import PASSWORD_VARIABLE, SinkTask

WRONG = "wr0ng-but-a-secret-too"
TARGET_VARIABLE = "DMDELTA_TEST_TARGET_PASSWORD"


class SecretTask(SinkTask):
    """Both passwords come from the environment."""

    def write_spec(self):
        path = super().write_spec()
        spec = yaml.safe_load(path.read_text())
        spec["sink"]["password"] = f"${{{TARGET_VARIABLE}}}"
        path.write_text(yaml.safe_dump(spec))
        return path


@pytest.fixture
def task(mysql80, mariadb, tmp_path, monkeypatch):
    made = SecretTask(tmp_path / "task", mysql80, mysql80.fresh_database("secret"), mode="all", target=mariadb)
    made.settings |= {"metrics": {"port": 0}, "validator": {"mode": "full"}}
    mysql80.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)", database=made.database)
    monkeypatch.setenv(TARGET_VARIABLE, mariadb.password)
    made.write_spec()
    return made


def family(pid):
    """The process ids of a session's processes: Java, its workers, relays in sessions of their own, and children."""
    parents = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(place.parent.name)] = int(place.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
    found = {pid}
    while more := {one for one, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def of_process(pid, what):
    try:
        return Path(f"/proc/{pid}/{what}").read_bytes()
    except OSError:  # it has ended
        return b""


def written(folder):
    """The contents of all files; of Parquet files their values."""
    for place in sorted(folder.rglob("*")):
        if place.is_file():
            yield place, place.read_bytes()
            if place.suffix == ".parquet":
                yield place, str(pq.read_table(place).to_pylist()).encode()


def assert_nowhere(task, *texts):
    secrets = [task.server.password.encode(), task.target.password.encode(), WRONG.encode()]
    places = list(written(task.folder))
    assert len(places) > 20
    places += [("said", text.encode()) for text in texts]
    assert [place for place, content in places for secret in secrets if secret in content] == []


def lock_out(server):
    """Change the password, and end the sessions that used the old one."""
    server.execute(f"ALTER USER '{server.user}'@'%' IDENTIFIED BY 'an0ther-{server.password[::-1]}'")
    for (number,) in server.query(
        "SELECT id FROM information_schema.processlist WHERE user = %s", arguments=(server.user,)
    ):
        with contextlib.suppress(pymysql.err.OperationalError):  # it has just ended
            server.execute(f"KILL {number}")


def test_passwords_are_nowhere(task, spark, capfd):
    """While a task loads, follows, sinks and validates, when its relay's log-in fails, and in output of commands."""
    server, secrets = task.server, [task.server.password.encode(), task.target.password.encode()]
    with task.environment():
        for command in ("check", "run"):
            with patch.dict(os.environ, {PASSWORD_VARIABLE: WRONG, TARGET_VARIABLE: WRONG}):
                assert execute(["--debug", command, str(task.spec)]) != 0
    wrong = capfd.readouterr()
    assert "Access denied" in wrong.out + wrong.err
    assert WRONG not in wrong.out + wrong.err
    with task.process() as process:
        process.wait_for('"tables": 1}')  # loaded and applied
        seen = family(process.pid)
        lines = {pid: of_process(pid, "cmdline") for pid in seen}
        assert sum(b"dmdelta.source.relay" in line for line in lines.values()) == 1
        assert any(b"java" in line.split(b"\0")[0] for line in lines.values()) is not is_provided()
        assert [line for line in lines.values() for secret in secrets if secret in line] == []
        inherited = [pid for pid in seen - {process.pid} for secret in secrets if secret in of_process(pid, "environ")]
        assert [lines[pid] for pid in inherited] == []
        try:
            lock_out(server)
            assert process.wait(120) == 3
        finally:
            server.execute(f"ALTER USER '{server.user}'@'%' IDENTIFIED BY '{server.password}'")
    assert process.count("Access denied")
    with task.environment():
        for command in (["check"], ["status", "--json"], ["report", f"-o{task.folder}/r"]):
            assert execute([command[0], str(task.spec), *command[1:]]) == 0, capfd.readouterr()
    assert_nowhere(task, process.whole_log(), *capfd.readouterr(), *wrong)


def test_a_plan_of_spark_does_not_show_the_password(mysql80, spark, capfd):
    """The readers of chunks get it in an option, which Spark redacts; so do its web page and its log."""
    database = mysql80.fresh_database("secret")
    mysql80.execute("CREATE TABLE t (id INT PRIMARY KEY)", database=database)
    endpoint = endpoint_of(mysql80)
    plan = plan_snapshot(endpoint, lambda schema, _: schema == database)
    frame = ChunkFrames(spark, endpoint, "s", "mysql", 1).bronze_rows(plan.chunks)
    frame.explain(extended=True)
    with pytest.raises(Exception, match="no_such_column") as caught:
        frame.select("no_such_column").collect()
    assert "id" in capfd.readouterr().out
    endpoint = replace(endpoint, password=WRONG)
    with pytest.raises(Exception, match="Access denied") as refused:
        ChunkFrames(spark, endpoint, "s", "mysql", 1).bronze_rows(plan.chunks).collect()
    shown = capfd.readouterr()
    for text in (*shown, str(caught.value), str(refused.value)):
        assert mysql80.password not in text
        assert WRONG not in text
