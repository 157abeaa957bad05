"""Ranges of which it is unknown what was executed: if a run ends within one, the next run continues it."""

import pytest

from dmdelta import failpoint
from dmdelta.errors import SinkError
from dmdelta.failpoint import VARIABLE, CrashPoint
from dmdelta.sink.settings import SinkSettings
from tests.integration.test_sink import write
from tests.support import tangles
from tests.support.pipeline import TASK
from tests.support.sinking import Sinking, table_differences, target_of

KEYED = [table for table in tangles.TABLES if table != "bag"]
BUCKET = 2048
"""Bytes of the log in a slice: a range has many."""


@pytest.fixture
def target(request):
    return request.getfixturevalue(request.param)


def differences(source, target, database, tables):
    return [line for table in tables for line in table_differences(source, target, database, table)]


@pytest.mark.parametrize(
    ("target", "workers"),
    [
        ("mysql80_too", 4),
        pytest.param("mysql80_too", 1, marks=pytest.mark.long),
        pytest.param("mariadb", 16, marks=pytest.mark.long),
        pytest.param("tidb", 4, marks=[pytest.mark.tidb, pytest.mark.long]),
    ],
    indirect=["target"],
)
def test_a_stop_or_an_error_within_an_unproven_range(mysql80, target, workers, spark, tmp_path, monkeypatch):
    """The metadata are lost; the next run stops early, the one after it fails: safe mode lasts to the exit point."""
    database = write(mysql80, 5, 40, statements=False)
    settings = SinkSettings(target_of(target), f"dm_{database}", workers=workers, batch=5, flush_interval=600.0)
    sinking = Sinking(spark, tmp_path, mysql80, [database], settings)
    sinking.land()
    _, end = sinking.bounds()
    sinking.run()
    target.execute(f"DROP DATABASE {settings.metadata}")
    sinking.bucket = BUCKET
    assert not sinking.run(slices=4).finished
    failpoint._passed.clear()
    monkeypatch.setenv(VARIABLE, f"{CrashPoint.SINK_BEFORE_COMMIT.value}:9=error:SinkError")
    with pytest.raises(SinkError, match="injected"):
        sinking.run()
    monkeypatch.delenv(VARIABLE)
    sinking.bucket = None
    last = sinking.run()
    assert last.finished
    assert last.safe.until == end
    assert differences(mysql80, target, database, KEYED) == []
    assert sinking.run().safe.until is None


def test_records_that_are_lost_after_a_stop(mysql80, mariadb, spark, tmp_path):
    """The checkpoint proves that nothing was in flight: no row is executed twice, also without a key."""
    database = write(mysql80, 6, 40, statements=False)
    settings = SinkSettings(target_of(mariadb), f"dm_{database}", workers=4, batch=5, flush_interval=600.0)
    sinking = Sinking(spark, tmp_path, mysql80, [database], settings, bucket=BUCKET)
    sinking.land()
    assert not sinking.run(slices=4).finished
    mariadb.execute(f"DELETE FROM {settings.metadata}.{TASK}_sink_executed")
    sinking.bucket = None
    assert sinking.run().finished
    assert differences(mysql80, mariadb, database, tangles.TABLES) == []
