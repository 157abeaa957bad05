"""Records a task's state by this version, once per release before its tag: `python -m tests.support.record_state`.

Two runs over the beginning of the log in tests/fixtures/state-binlogs, a failure, and a decision on a later statement.
Tests of later versions resume from it (`tests/integration/test_upgrade.py`). A released state is never recorded again.
"""

import json
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from dmdelta import __version__
from dmdelta.cli.main import execute
from dmdelta.engine.control.table import ControlTable
from dmdelta.engine.control.table import State as TaskState
from dmdelta.errors import StageFailed
from tests.support.state import EXPECTED, FAILED_BY, FIXTURES, SECOND, TASK, State, pack

MOST_BYTES = 300_000


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        state, whole = State(Path(folder) / "state"), State(Path(folder) / "whole")
        for task, shares in ((state, (0.3, 0.6)), (whole, (1,))):
            task.begin()
            for share in shares:
                task.log_has_grown_to(share)
                _run("run", task.spec, "--until-caught-up")
        _run("binlog", "skip", state.spec, "--position", f"1/{SECOND}:4")
        spark = SparkSession.builder.getOrCreate()
        ControlTable(spark, state.lakehouse, TASK).publish(TaskState.FAILED, StageFailed(FAILED_BY, hint="go on"))
        silver = whole.silver(spark)
        assert all(silver.values())
        (state.folder / EXPECTED).write_text(json.dumps(silver))
        target = FIXTURES / f"state-{__version__}.tar.gz"
        FIXTURES.mkdir(exist_ok=True)
        pack(state, target)
    assert target.stat().st_size < MOST_BYTES, f"{target} has {target.stat().st_size} bytes"
    print(f"{target}: {target.stat().st_size} bytes, { ({name: len(rows) for name, rows in silver.items()}) }")


def _run(*arguments: str) -> None:
    assert execute(arguments) == 0


if __name__ == "__main__":
    main()
