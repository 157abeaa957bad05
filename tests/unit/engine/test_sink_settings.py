"""The sink's settings, from the spec."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from dmdelta.config import SinkConfig
from dmdelta.config.syncer import SyncerConfig
from dmdelta.engine.sink import sink_settings

SINK = SinkConfig(kind="mysql", host="h", user="u")


@pytest.mark.parametrize(("duration", "seconds"), [(None, 20.0), (timedelta(seconds=7), 7.0), (timedelta(0), 0.0)])
def test_safe_mode_duration(duration, seconds):
    """The same as for silver: `safe-mode-duration`, by default two flush intervals."""
    syncer = SyncerConfig(checkpoint_flush_interval=timedelta(seconds=10), safe_mode_duration=duration)
    assert sink_settings(SimpleNamespace(syncer=syncer, sources=()), SINK).safe_mode_duration == seconds
