"""A task that does not run is inspected, and receives requests, without a JVM: dm_meta is under a local root, or, for
commands that read, in an object store.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
import yaml

from dmdelta.config import load_spec
from dmdelta.engine.inspect.stored_status import stored_status
from dmdelta.lakehouse.access.deferred_session import deferred_session
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.session import is_provided
from dmdelta.lakehouse.tables import table_state
from tests.support.object_store import serving_objects
from tests.support.task import Task

pytestmark = pytest.mark.skipif(is_provided(), reason="files of a provided Spark may be on another machine")


@pytest.fixture
def task(mysql80, tmp_path):
    made = Task(tmp_path, mysql80, mysql80.fresh_database("idle"))
    made.settings["validator"] = {"mode": "full"}
    made.start_here()
    for table in ("one", "two"):
        mysql80.execute(
            f"CREATE TABLE {table} (id INT PRIMARY KEY)", f"INSERT INTO {table} VALUES (1)", database=made.database
        )
    made.catch_up()
    return made


def cold(task, *arguments):
    """The JSON answer of a command in a process that cannot start Java."""
    dmdelta = Path(sys.executable).with_name("dmdelta")
    with task.environment(), patch.dict(os.environ, {"JAVA_HOME": "/nowhere", "PATH": "/nowhere"}):
        done = subprocess.run(
            [str(dmdelta), *arguments, "--json"], capture_output=True, text=True, check=False, timeout=120
        )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_state_is_read_and_requests_are_recorded(task):
    """The status is that of a process with Spark; an override is recorded and read."""
    spec = str(task.spec)
    with task.environment():
        expected = json.loads(stored_status(load_spec(task.spec)).model_dump_json())
    status = cold(task, "status", spec)
    assert {**status, "at": None} == {**expected, "at": None}
    (source,) = status["sources"]
    assert source["applied_to"] == source["landed_to"] == source["relayed_to"]
    assert source["newest_change"] is not None
    points = cold(task, "checkpoint", "show", spec)
    assert {row["cp_table"] for row in points if not row["is_global"]} == {"one", "two"}
    (log,) = cold(task, "relay", "status", spec)
    assert log["segments"] > 0
    (validator,) = cold(task, "validate", "status", spec)
    assert {table["table"].split(".")[1]: table["status"] for table in validator["tables"]} == {
        "one": "validated",
        "two": "validated",
    }
    assert cold(task, "validate", "show-error", spec) == []
    assert cold(task, "shard-ddl-lock", "list", spec) == []
    at = f"{source['applied_to']}"
    (decided,) = cold(task, "binlog", "skip", spec, f"--position={at}")
    assert cold(task, "binlog", "list", spec) == [decided]
    assert tables_in_silver(task, "one", "three") == [True, False]


def tables_in_silver(task, *names):
    """Whether silver has these tables, according to the lakehouse alone."""
    lakehouse, session = Lakehouse(root=str(task.root)), deferred_session(lambda: pytest.fail("a JVM is started"))
    return [table_state(session, lakehouse.silver(task.database, name)) is not None for name in names]


def test_an_object_store_is_read_the_same_way(task):
    """The lakehouse of a local task, as a bucket: the same answers, with the credentials of the environment."""
    spec = yaml.safe_load(task.spec.read_text())
    remote = task.folder / "remote.yml"
    remote.write_text(yaml.safe_dump({**spec, "lakehouse": {"root": f"s3://lake/{task.root.name}"}}))
    with serving_objects(task.root.parent) as environment, patch.dict(os.environ, environment):
        for command in (
            ("status",),
            ("checkpoint", "show"),
            ("relay", "status"),
            ("validate", "status"),
            ("validate", "show-error"),
            ("binlog", "list"),
            ("shard-ddl-lock", "list"),
        ):
            here, there = (cold(task, *command, str(path)) for path in (task.spec, remote))
            assert without_moments(there) == without_moments(here), command


def without_moments(answer):
    """The answer without the values that differ between two calls."""
    if isinstance(answer, list):
        return [without_moments(one) for one in answer]
    return {key: value for key, value in answer.items() if key not in ("at", "free_bytes")}


def test_the_newest_change_is_that_of_bronze(task, spark):
    """It comes from file statistics; Spark's own query confirms it."""
    with task.environment():
        (source,) = stored_status(load_spec(task.spec)).sources
    lakehouse = Lakehouse(root=str(task.root))
    bronze = spark.sql(f"SELECT max(committed_at) AS at FROM {lakehouse.bronze}").collect()[0].at
    difference = abs((source.newest_change - bronze.astimezone(source.newest_change.tzinfo)).total_seconds())
    assert difference < 0.002
