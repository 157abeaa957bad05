"""What a command that needs Spark shows before Spark has started."""

import os
import sys
from pathlib import Path

import pytest
import yaml

from dmdelta.errors import LakehouseError
from tests.support.terminal import on_terminal


@pytest.mark.parametrize("command", ["events", "report", "quality"])
def test_the_start_of_spark_is_shown_before_it_succeeds(tmp_path, command):
    """Without Java it never does: the terminal has shown that Spark is being started, and then shows the error."""
    spec = tmp_path / "task.yml"
    source = {"source-id": "s1", "binlog-dir": str(tmp_path)}
    spec.write_text(yaml.safe_dump({"name": "t", "sources": [source], "lakehouse": {"root": str(tmp_path / "lake")}}))
    environment = {**os.environ, "JAVA_HOME": "/nowhere", "PATH": "/nowhere"}
    shown = on_terminal([str(Path(sys.executable).with_name("dmdelta")), command, str(spec)], environment)
    assert shown.code == LakehouseError.exit_code, shown.stderr
    assert list(shown.stages) == ["starting Spark"]
    assert 0 <= shown.stderr.find("starting Spark") < shown.stderr.find("error: Spark does not start")
    assert shown.stderr.count("error: ") == 1
    assert shown.stdout == ""
