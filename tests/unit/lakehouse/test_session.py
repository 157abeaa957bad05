"""What a session can do, told without one."""

import os

import pytest

from dmdelta.lakehouse.session import can_replace, is_provided, tasks_at_once


@pytest.mark.parametrize(
    ("environment", "answer"),
    [
        ({}, True),
        ({"DATABRICKS_RUNTIME_VERSION": "18.2"}, True),
        ({"DATABRICKS_RUNTIME_VERSION": "17.3"}, False),
        ({"DATABRICKS_RUNTIME_VERSION": "client.4.1"}, False),
        ({"SPARK_REMOTE": "sc://somewhere"}, False),
    ],
)
def test_replace_only_where_it_is_known(monkeypatch, environment, answer):
    """An older Delta would overwrite the whole table: without proof MERGE does the work."""
    for name in ("DATABRICKS_RUNTIME_VERSION", "SPARK_REMOTE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert can_replace() is answer
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
    ],
)
def test_tasks_at_once_are_known_of_this_machine(monkeypatch, environment, answer):
    """A cluster's are not."""
    for name in ("DATABRICKS_RUNTIME_VERSION", "SPARK_REMOTE", "SPARK_MASTER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert tasks_at_once() == answer
