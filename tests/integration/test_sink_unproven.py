"""Ranges of which it is not known what was executed: a run that ends within one leaves that to the next."""

import pytest

from dmdelta.errors import SinkError
from dmdelta.failpoint import VARIABLE, CrashPoint
from dmdelta.sink.settings import SinkSettings
from tests.integration.test_sink import write
from tests.support import tangles
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
    """The records are lost; the next run stops early, the one behind it fails: safe mode still lasts to the exit point."""
    database = write(mysql80, 5, 60, statements=False)
    settings = SinkSettings(target_of(target), f"dm_{database}", workers=workers, batch=5, flush_interval=600.0)
    sinking = Sinking(spark, tmp_path, mysql80, [database], settings, bucket=BUCKET)
    sinking.land()
    sinking.run()
    target.execute(f"DROP DATABASE {settings.metadata}")
    assert not sinking.run(slices=9).finished
    monkeypatch.setenv(VARIABLE, f"{CrashPoint.SINK_BEFORE_COMMIT.value}:9=error:SinkError")
    with pytest.raises(SinkError):
        sinking.run()
    monkeypatch.delenv(VARIABLE)
    assert not sinking.run(slices=2).finished
    assert sinking.run().finished
    assert differences(mysql80, target, database, KEYED) == []
