"""A task over Spark Connect in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from dmdelta.lakehouse.session import SessionSettings
from tests.support.connect_server import running_connect_server

BINLOGS = Path(__file__).parents[2] / "pipelines" / "quickstart-binlogs" / "mysql"


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_process_of_a_run_ends(tmp_path):
    """The channels of its sessions are closed, also those with a call that has not ended."""
    spec = tmp_path / "task.yml"
    source = {"source-id": "one", "binlog-dir": str(BINLOGS)}
    spec.write_text(
        yaml.safe_dump({"name": "shop", "sources": [source], "lakehouse": {"root": str(tmp_path / "lake")}})
    )
    command = [Path(sys.executable).with_name("dmdelta"), "run", spec, "--until-caught-up"]
    with running_connect_server(SessionSettings("local[2]", "2g", 2)) as remote:
        environment = {**os.environ, "SPARK_REMOTE": remote}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr[-4000:]
    assert (tmp_path / "lake/silver/shop/orders/_delta_log/00000000000000000000.json").is_file()
