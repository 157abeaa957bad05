"""The capabilities of a session, determined without starting one."""

import os
from types import SimpleNamespace

import pytest

from dmdelta.errors import LakehouseError
from dmdelta.lakehouse.commits import tagged
from dmdelta.lakehouse.history import CommitTag
from dmdelta.lakehouse.session import (
    SQL_CONFS,
    SessionSettings,
    can_replace,
    clone_session,
    is_provided,
    local_confs,
    open_session,
    tasks_at_once,
)
from dmdelta.model.position import Position

PROVIDERS = ("DATABRICKS_RUNTIME_VERSION", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT")


class Asked:
    """A remote Spark whose Delta version can or cannot be queried."""

    def __init__(self, version):
        self.version = version

    def sql(self, _statement):
        if self.version is None:
            raise RuntimeError("java_method is not allowed")
        return SimpleNamespace(collect=lambda: [(self.version,)])


@pytest.mark.parametrize(
    ("environment", "version", "answer"),
    [
        ({}, None, True),
        ({"DATABRICKS_RUNTIME_VERSION": "18.2"}, None, True),
        ({"DATABRICKS_RUNTIME_VERSION": "17.3"}, None, False),
        ({"DATABRICKS_RUNTIME_VERSION": "client.4.1"}, "4.4.0", False),
        ({"SPARK_REMOTE": "sc://somewhere"}, "4.3.0", True),
        ({"SPARK_REMOTE": "sc://somewhere"}, "4.2.0", False),
        ({"SPARK_REMOTE": "sc://somewhere"}, None, False),
        ({"PYSPARK_GATEWAY_PORT": "4711"}, "4.4.0", True),
    ],
)
def test_replace_only_with_a_known_delta_version(monkeypatch, environment, version, answer):
    """An older Delta would overwrite the whole table: if the version is unknown, MERGE is used."""
    for name in PROVIDERS:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("dmdelta.lakehouse.session._DELTA_VERSIONS", {})
    assert can_replace(Asked(version)) is answer
    assert is_provided() is bool(environment)


@pytest.mark.parametrize(
    ("environment", "answer"),
    [
        ({}, os.cpu_count()),
        ({"SPARK_MASTER": "local[*]"}, os.cpu_count()),
        ({"SPARK_MASTER": "local[3]"}, 3),
        ({"SPARK_MASTER": "local[3,2]"}, 3),
        ({"SPARK_MASTER": "local"}, 1),
        ({"SPARK_MASTER": "spark://somewhere:7077"}, None),
        ({"DATABRICKS_RUNTIME_VERSION": "18.2"}, None),
        ({"PYSPARK_GATEWAY_PORT": "4711"}, None),
    ],
)
def test_the_number_of_tasks_is_known_for_a_local_session(monkeypatch, environment, answer):
    """A cluster's number is unknown."""
    for name in (*PROVIDERS, "SPARK_MASTER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert tasks_at_once() == answer


def test_a_jvm_beside_a_run_is_smaller(monkeypatch):
    """Half of the cores, for Spark, Java's compilers and its collector; the heap is the smallest, unless it is set."""
    for name in (*PROVIDERS, "SPARK_DRIVER_MEMORY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    alone, beside = (local_confs(SessionSettings(beside_run=beside)) for beside in (False, True))
    assert "ActiveProcessorCount" not in alone["spark.driver.extraJavaOptions"]
    assert "-XX:ActiveProcessorCount=8" in beside["spark.driver.extraJavaOptions"]
    assert (alone["spark.sql.shuffle.partitions"], beside["spark.sql.shuffle.partitions"]) == ("16", "8")
    assert beside["spark.driver.memory"] == "1024m"
    for cores, used in ((1, 1), (2, 2), (3, 2), (64, 32)):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        assert SessionSettings(beside_run=True).cores == used
    monkeypatch.setenv("SPARK_DRIVER_MEMORY", "6g")
    assert "spark.driver.memory" not in local_confs(SessionSettings(beside_run=True))


class Picky:
    """A session as on serverless compute: all but a few confs are rejected."""

    def __init__(self, *taken):
        self.taken = taken
        self.set_to = {}
        self.conf = self

    def set(self, name, value):
        if name not in self.taken:
            raise RuntimeError("CONFIG_NOT_AVAILABLE")
        self.set_to[name] = value

    def unset(self, name):
        self.set_to.pop(name, None)


def provided(monkeypatch, session):
    """`session` is provided by Databricks."""
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "client.4.1")
    builder = SimpleNamespace(getOrCreate=lambda: session)
    monkeypatch.setattr("dmdelta.lakehouse.session.SparkSession", SimpleNamespace(builder=builder))
    return open_session("t")


def test_confs_for_speed_may_be_rejected(monkeypatch):
    """Those that affect values may not be rejected."""
    needed = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}
    assert provided(monkeypatch, Picky(*needed)).set_to == needed
    assert provided(monkeypatch, Picky(*SQL_CONFS)).set_to == SQL_CONFS
    files = "spark.databricks.delta.allFilesInCrc.enabled"  # verified at each commit if the JVM's zone is not UTC
    assert provided(monkeypatch, Picky(*needed, files)).set_to == {**needed, files: "false"}
    for name in needed:
        with pytest.raises(LakehouseError, match=name):
            provided(monkeypatch, Picky(*needed.keys() - {name}))


def test_a_statement_is_not_run_without_its_tag():
    """Its commit would have no position: compute that rejects the confs is an error before anything is written."""
    tag = CommitTag(
        app="app",
        version=1,
        task="t",
        source="s1",
        run="run",
        begin=Position(1, "binlog.000001", 4),
        end=Position(1, "binlog.000001", 8),
        gtid_set="",
    )
    with pytest.raises(LakehouseError, match="userMetadata") as caught, tagged(Picky(), tag):
        pytest.fail("the statement was run")
    assert "docs/databricks.md" in caught.value.hint


def test_a_client_that_cannot_clone_a_session_is_refused():
    """Spark Connect before 4.1, such as that of Databricks' serverless environment 4: which version can is in the hint."""
    with pytest.raises(LakehouseError, match="cannot clone a session") as raised:
        clone_session(SimpleNamespace(version="4.0.0"))
    assert "environment version 5 or later" in raised.value.hint
