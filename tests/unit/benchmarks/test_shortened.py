"""A task's processes have short days: a shortened name that dmdelta no longer has is detected."""

import json
import os
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

from benchmarks.shortened import CUT_SECONDS, shortened_environment

RUN = """
import json
from datetime import datetime, timezone
from dmdelta.bronze import landing
from dmdelta.engine.ingest import loop
from dmdelta.engine.maintenance import background, retention
from dmdelta.lakehouse import metadata_table
from dmdelta.lakehouse.access import log_cleanup
from dmdelta.lakehouse.maintenance.old_commits import Content, MaintainedTable
from dmdelta.lakehouse.retention import silver_retention
now = datetime.now(timezone.utc)
print(json.dumps({
    "polls": [loop.POLL_SECONDS, background.POLL_SECONDS, background.SLOW_SECONDS],
    "retention": [
        [one.log.total_seconds(), one.files.total_seconds(), one.vacuum.total_seconds()]
        for one in (MaintainedTable("t", Content.BRONZE).retention, silver_retention(None, "delta.`/silver/t`"))
    ],
    "checksums": log_cleanup.CHECKSUMS_KEPT.total_seconds(),
    "days": [(one.datetime.now(timezone.utc) - now).days for one in (landing, retention)],
    "properties": metadata_table._properties("t"),
}))
"""


def output_of(*arguments: str) -> str:
    """The output of Python with these arguments in the environment of a run that started three minutes ago."""
    began = datetime.now(timezone.utc) - timedelta(minutes=3)
    environment = {**os.environ, **shortened_environment(began)}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=environment, text=True, capture_output=True, check=True)
    assert not done.stderr
    return done.stdout


def test_the_run_has_days_of_minutes(tmp_path: Path):
    script = tmp_path / "dmdelta"
    script.write_text(RUN)
    found = json.loads(output_of(str(script)))
    assert found["polls"] == [0.05, 5.0, 150.0]
    assert found["retention"] == [[240.0, 60.0, 120.0], [360.0, 120.0, 180.0]]
    assert found["checksums"] == 60.0
    assert found["days"] == [1, 1]
    assert found["properties"]["delta.deletedFileRetentionDuration"] == "interval 1 minutes"


def test_the_relay_cuts_more_often():
    code = "from dmdelta.source.relay import segmenter; print(segmenter.CUT_SECONDS)"
    assert float(output_of("-c", code, "dmdelta.source.relay")) == CUT_SECONDS


def test_other_processes_are_not_affected():
    code = "from dmdelta.source.relay import segmenter; print(segmenter.CUT_SECONDS)"
    assert float(output_of("-c", code)) == 1.0
